"""Studies of designs, each with its page; `index` lists them."""
