package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// name is a namespace or a dataset on the command line.
type name struct{ owner, namespace, dataset string }

func (n name) String() string {
	parts := []string{n.owner, n.namespace, n.dataset}
	if n.owner == "self" {
		parts = parts[1:]
	}

	return strings.TrimSuffix(strings.Join(parts, "/"), "/")
}

// datasetName parses NAMESPACE/DATASET or OWNER/NAMESPACE/DATASET.
func datasetName(text string) (name, error) {
	switch parts := strings.Split(text, "/"); len(parts) {
	case 2:
		return whole(text, name{"self", parts[0], parts[1]})
	case 3:
		return whole(text, name{parts[0], parts[1], parts[2]})
	default:
		return name{}, exitError{exitUsage, fmt.Sprintf("%q is not the name of a dataset: write NAMESPACE/DATASET or OWNER/NAMESPACE/DATASET", text), "`quern dataset list` shows the names."}
	}
}

// namespaceName parses NAMESPACE or OWNER/NAMESPACE.
func namespaceName(text string) (name, error) {
	switch parts := strings.Split(text, "/"); len(parts) {
	case 1:
		return whole(text, name{"self", parts[0], ""})
	case 2:
		return whole(text, name{parts[0], parts[1], ""})
	default:
		return name{}, usageError{fmt.Errorf("%q is not the name of a namespace: write NAMESPACE or OWNER/NAMESPACE", text), "quern namespace"}
	}
}

func whole(text string, n name) (name, error) {
	if n.owner == "" || n.namespace == "" || n.dataset == "" && strings.HasSuffix(text, "/") {
		return name{}, usageError{fmt.Errorf("%q has an empty part", text), "quern"}
	}

	return n, nil
}

// inNamespace adds the flag for the namespace of a command.
func inNamespace(command *cobra.Command, namespace *string) {
	command.Flags().StringVarP(namespace, "namespace", "n", os.Getenv("QUERN_NAMESPACE"), "use this namespace: NAMESPACE or OWNER/NAMESPACE (QUERN_NAMESPACE)")
}

func chosenNamespace(text string) (name, error) {
	if text == "" {
		return name{}, usageError{errors.New("no namespace: use --namespace or QUERN_NAMESPACE; `quern namespace list` shows yours"), "quern"}
	}

	return namespaceName(text)
}
