// Gen writes the files that are generated from openapi.yaml: the served document and the Go code. It runs in api/.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	served, err := load("x-quern-planned")
	if err != nil {
		return err
	}

	if err := write("openapi.gen.json", served); err != nil {
		return err
	}

	// Handwritten code reads the body of some operations, so the server is generated without them, and the client with
	// them.
	if err := generate(ctx, "client.yaml", "x-quern-planned", "x-quern-raw"); err != nil {
		return err
	}

	return generate(ctx, "server.yaml", "x-quern-planned", "x-quern-raw", "x-quern-unread")
}

// generate writes the Go code of the contract without the operations that have one of the marks.
func generate(ctx context.Context, config string, without ...string) error {
	coded, err := load(without...)
	if err != nil {
		return err
	}

	simplify(coded)

	folder, err := os.MkdirTemp("", "quern-api")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()

	input := filepath.Join(folder, "openapi.json")
	if err := write(input, coded); err != nil {
		return err
	}

	command := exec.CommandContext(ctx, "oapi-codegen", "-config", config, input)
	command.Stderr = os.Stderr

	return command.Run()
}

// load reads the contract, completes it, and removes the operations and parameters that have one of the marks.
func load(marks ...string) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}

	if err := addCommon(doc); err != nil {
		return nil, err
	}

	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			marked := func(extensions map[string]any) bool {
				return slices.ContainsFunc(marks, func(mark string) bool { return extensions[mark] == true })
			}

			operation.Parameters = slices.DeleteFunc(operation.Parameters, func(parameter *openapi3.ParameterRef) bool {
				return marked(parameter.Value.Extensions)
			})

			if marked(operation.Extensions) {
				item.SetOperation(method, nil)
			}
		}

		if len(item.Operations()) == 0 {
			doc.Paths.Delete(path)
		}
	}

	return doc, nil
}

// simplify replaces the error responses of each operation by one default response, so that the Go code has no type for
// each of them: all errors have the same shape and are written by one function. The middleware sets the request ID.
func simplify(doc *openapi3.T) {
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if status >= "400" {
					operation.Responses.Delete(status)
				} else {
					delete(response.Value.Headers, "X-Request-Id")
				}
			}

			operation.Responses.Set("default", &openapi3.ResponseRef{Ref: "#/components/responses/Internal"})
		}
	}
}

func write(path string, doc *openapi3.T) error {
	text, err := doc.MarshalJSON()
	if err != nil {
		return err
	}

	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err
	}

	if err := removeUnused(tree); err != nil {
		return err
	}

	pretty, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(path, append(pretty, '\n'), 0o644) //nolint:gosec // a public document
}

// removeUnused removes the components and tags that are not referenced, until all remaining ones are used.
func removeUnused(doc map[string]any) error {
	components, _ := doc["components"].(map[string]any)

	for removed := true; removed; {
		removed = false

		current, err := json.Marshal(doc)
		if err != nil {
			return err
		}

		for kind, list := range components {
			if kind == "securitySchemes" {
				continue
			}

			entries, _ := list.(map[string]any)
			for name := range entries {
				if !bytes.Contains(current, fmt.Appendf(nil, `"#/components/%s/%s"`, kind, name)) {
					delete(entries, name)

					removed = true
				}
			}
		}
	}

	paths, err := json.Marshal(doc["paths"])
	tags, _ := doc["tags"].([]any)
	doc["tags"] = slices.DeleteFunc(tags, func(tag any) bool {
		entry, _ := tag.(map[string]any)

		return !bytes.Contains(paths, fmt.Appendf(nil, `"tags":["%v"]`, entry["name"]))
	})

	return err
}
