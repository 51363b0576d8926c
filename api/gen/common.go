package main

import (
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// addCommon adds what openapi.yaml does not repeat, by the rule at its top: the common error responses to each operation,
// and the header X-Request-Id to each response. It fails on what is listed although the rule adds it, so that an operation
// in openapi.yaml shows only what is particular to it.
func addCommon(doc *openapi3.T) error {
	for name, response := range doc.Components.Responses {
		if err := addRequestID(response, "the component "+name); err != nil {
			return err
		}
	}

	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if err := addRequestID(response, method+" "+path+" "+status); err != nil {
					return err
				}
			}

			for status, name := range commonResponses(item, operation) {
				if operation.Responses.Value(status) != nil {
					return fmt.Errorf("%s %s lists the response %s, which is added to it", method, path, status)
				}

				operation.Responses.Set(status, &openapi3.ResponseRef{Ref: "#/components/responses/" + name})
			}
		}
	}

	return nil
}

// addRequestID adds the header to a response, unless the response is a reference to a component, which has it already.
func addRequestID(response *openapi3.ResponseRef, where string) error {
	const name = "X-Request-Id"

	if response.Ref != "" {
		return nil
	}

	if response.Value.Headers[name] != nil {
		return fmt.Errorf("%s lists the header %s, which is added to it", where, name)
	}

	if response.Value.Headers == nil {
		response.Value.Headers = openapi3.Headers{}
	}

	response.Value.Headers[name] = &openapi3.HeaderRef{Ref: "#/components/headers/RequestId"}

	return nil
}

// commonResponses returns the components of the responses that an operation has by the rule, by status.
func commonResponses(item *openapi3.PathItem, operation *openapi3.Operation) map[string]string {
	responses := map[string]string{"404": "NotFound", "405": "MethodNotAllowed", "500": "Internal"}
	add := func(status, name string) { responses[status] = name }

	if operation.Security == nil {
		add("401", "Unauthorized")
		add("403", "Forbidden")
		add("429", "RateLimited")
		add("503", "Unavailable")
		add("504", "Timeout")
	}

	if operation.OperationID == "callTool" { // its protocol says what a 404 is
		delete(responses, "404")
	}

	if operation.Extensions["x-quern-tolerant"] != true {
		add("422", "Unprocessable") // for an unknown parameter
	}

	if operation.Extensions["x-quern-raw"] == true {
		return responses
	}

	if operation.RequestBody != nil {
		add("400", "BadRequest")
		add("413", "PayloadTooLarge")
		add("415", "UnsupportedMediaType")
		add("422", "Unprocessable")
	}

	for _, parameter := range slices.Concat(item.Parameters, operation.Parameters) {
		if parameter.Value.In != openapi3.ParameterInPath {
			add("422", "Unprocessable")
		}

		if parameter.Value.Name == "Idempotency-Key" {
			add("409", "Conflict")
		}
	}

	return responses
}
