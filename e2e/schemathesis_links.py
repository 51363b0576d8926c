"""Adds links to the contract, from an operation that creates something to those that use it, for the stateful phase. The
links that schemathesis infers are off: with them it never starts with an operation that creates a dataset."""
import json
import sys

DATASET = {"username": "$response.body#/dataset/owner", "namespace": "$response.body#/dataset/namespace", "datasetName": "$response.body#/dataset/name"}
NAMESPACE = {"username": "ada", "namespace": "$response.body#/name"}
LINKS = {
    ("createDataset", "201"): {
        use: DATASET
        for use in (
            "getDataset", "updateDataset", "deleteDataset", "clearDataset", "getInferDefinition", "putInferDefinition", "getSemantics",
            "putSemantics", "listRows", "appendRows", "exportDataset", "listIngestions", "listSnapshots", "listDatasetShares", "grantDatasetShare",
        )
    },
    ("createToken", "201"): {"deleteToken": {"id": "$response.body#/id"}},
    ("prepareUpload", "200"): {use: {"sessionId": "$response.body#/sessionId"} for use in ("getUpload", "listUploadFiles", "abortUpload")},
    ("ask", "200"): {use: {"runId": "$response.body#/runId"} for use in ("getRun", "cancelRun", "chooseOption", "submitFeedback", "getFeedback", "deleteFeedback")},
    ("createNamespace", "201"): {use: NAMESPACE for use in ("updateNamespace", "deleteNamespace", "listDatasets", "listNamespaceShares")},
}

path = sys.argv[1]
with open(path) as file:
    document = json.load(file)
for item in document["paths"].values():
    for operation in item.values():
        for (source, status), targets in LINKS.items():
            if isinstance(operation, dict) and operation.get("operationId") == source:
                operation["responses"][status]["links"] = {
                    target: {"operationId": target, "parameters": parameters} for target, parameters in targets.items()
                }
with open(path, "w") as file:
    json.dump(document, file)
