"""Programs: what is summed. Variables, a profile of them, coefficients, and what comes out."""
