"""Which strategies act through ids, and which on any encoding."""

from pe_cli import strategies

ON_ANY = ("none", "log_n", "sinks", "truncate", "window")
"""What the model is shown of the text, or how sharply it looks: these leave ids alone."""

BY_IDS = [name for name in strategies.names() if name not in ON_ANY]
