"""HTTP client of the service and the `nnfarm` command.

from service.client import Client

with Client("http://127.0.0.1:8000") as client:
    model = client.upload_model(Path("model.onnx"))
    compilation = client.compile(CompilationRequest(model_id=model.id, levels=(1, 4)))
    for event in client.follow(compilation.id):
        print(event.kind, event.data)
    results = client.results(compilation.id)
"""

from service.client.http import Client
from service.client.messages import CompilationRequest, QuantizationRequest, TuningRequest

__all__ = ["Client", "CompilationRequest", "QuantizationRequest", "TuningRequest"]
