"""Stages of the pipeline: functions of (plan, inputs) that give a result."""
