"""The one-machine supervisor: starts service, worker and agent as processes and keeps them up.

It imports nothing of workers and device_farm; the parts are told everything by settings.

    python -m service.local serve    # until Ctrl-C, at http://127.0.0.1:8000
    python -m service.local demo     # compile and run examples/digits, show the table, stop
"""
