"""Locked judges at work: judged tables, corrected rates, plans."""
