package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// component is a part of a program, as CycloneDX 1.6 has it.
type component struct {
	Type     string   `json:"type"`
	Ref      string   `json:"bom-ref"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Purl     string   `json:"purl,omitempty"`
	Hashes   []hashed `json:"hashes,omitempty"`
	Licenses []any    `json:"licenses,omitempty"`
}

type hashed struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// bill writes what is in a program. The program itself says it: what the linker left out is not in the list, and nothing can be forgotten.
func bill(binary, path string, t target, version string, date time.Time) error {
	found, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("reading what is in it: %w", err)
	}

	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}

	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	itself := component{
		Type: "application", Ref: t.String(), Name: t.program, Version: version, Hashes: []hashed{{"SHA-256", sum}},
		Licenses: []any{map[string]any{"license": map[string]string{"id": "Apache-2.0"}}},
	}

	parts := []component{module("std", strings.TrimPrefix(found.GoVersion, "go"))}

	for _, dep := range found.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}

		parts = append(parts, module(dep.Path, dep.Version))
	}

	refs := make([]string, len(parts))
	for i, part := range parts {
		refs[i] = part.Ref
	}

	return create(path, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")

		return encoder.Encode(map[string]any{
			"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
			// Of the program's bytes, so that the same program has the same list.
			"serialNumber": fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", sum[:8], sum[8:12], sum[13:16], sum[17:20], sum[20:32]),
			"metadata":     map[string]any{"timestamp": date.Format(time.RFC3339), "component": itself},
			"components":   parts,
			"dependencies": []dependency{{Ref: itself.Ref, DependsOn: refs}},
		})
	})
}

func module(path, version string) component {
	purl := "pkg:golang/" + strings.ReplaceAll(path, "+", "%2B") + "@" + strings.ReplaceAll(version, "+", "%2B")

	return component{Type: "library", Ref: purl, Name: path, Version: version, Purl: purl}
}
