"""A gate that flags texts by lists of phrases and by a classifier of your own."""
