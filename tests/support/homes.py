"""Five homes with one to four members: the small table that advice and the page are asked about."""

import numpy as np
import pandas as pd

SIZES = [1, 2, 3, 4, 4]
FRAME = pd.DataFrame(
    {
        "home": np.repeat(range(5), SIZES),
        "day": np.concatenate([range(size) for size in SIZES]),
        "income": np.linspace(1.5, 98.5, 14),
        "sick": [True, False] * 7,
        "state": ["well", "ill"] * 7,
    }
)
