"""How each picture looks; these modules load matplotlib."""
