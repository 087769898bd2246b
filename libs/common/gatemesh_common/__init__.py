"""What two services or more share: messages, broker topology, outbox and inbox."""
