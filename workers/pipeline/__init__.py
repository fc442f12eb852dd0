"""The compile pipeline: a validated plan carried out in stages."""
