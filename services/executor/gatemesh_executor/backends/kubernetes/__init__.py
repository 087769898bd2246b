"""Engines that run as pods of a Kubernetes cluster."""
