"""The kinds of model a copy may be, how each family is fitted, and the classifier that users get."""
