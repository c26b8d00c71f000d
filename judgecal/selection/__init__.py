"""Selection: choose a judge by a stated loss, confirm it once, lock it, and notice when it changes."""
