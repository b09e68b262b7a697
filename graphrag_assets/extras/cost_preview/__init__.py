"""What the next `index` costs, before anything is paid."""
