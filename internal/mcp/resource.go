package mcp

import (
	"context"
	_ "embed"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// scheme begins the address of a dataset.
const scheme = "quern://"

//go:embed explore.txt
var explore string

// addResources adds datasets as resources, and the prompt. Datasets are not listed: there may be any number of them.
func (s *Server) addResources(served *sdk.Server) {
	served.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "dataset", Title: "Dataset", URITemplate: scheme + "{owner}/{namespace}/{dataset}", MIMEType: jsonType,
		Description: "What describe_dataset returns.",
	}, s.readResource)

	served.AddPrompt(&sdk.Prompt{
		Name: "explore", Title: "Explore the data", Description: "Get to know the datasets, and what can be asked about them.",
		Arguments: []*sdk.PromptArgument{{Name: "namespace", Description: "Name of your own namespace, or owner/name. Default: all that you can see."}},
	}, prompt)
}

func (s *Server) readResource(ctx context.Context, request *sdk.ReadResourceRequest) (answer *sdk.ReadResourceResult, err error) {
	outer := requestOf(ctx)

	inner, stop := context.WithTimeout(outer, s.QueryTimeout)
	defer stop()

	err = fault.Try(func() error {
		at, isPath := resourcePath(request.Params.URI)
		if !isPath {
			return fault.Absent()
		}

		found, err := s.describe(&invocation{Context: inner, who: s.Who(outer), reply: ctx}, at) //nolint:contextcheck // the invocation is the context
		if err != nil {
			return err
		}

		if err := s.audit(inner, s.Who(outer), "resource"); err != nil {
			return err
		}

		text, err := encode(found)
		answer = &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: request.Params.URI, MIMEType: jsonType, Text: string(text)}}}

		return err
	})
	if err == nil {
		return answer, nil
	}

	s.Note(outer, err)

	e := fault.From(err)

	switch {
	case e.Code == fault.NotFound:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "There is no such resource that you can see."}
	case isOurs()[e.Code]:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: words(e)}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: words(e)}
	}
}

// resourcePath returns the dataset of an address.
func resourcePath(uri string) (at catalog.Path, isPath bool) {
	rest, isOurs := strings.CutPrefix(uri, scheme)
	parts := strings.Split(rest, "/")

	if !isOurs || len(parts) != 3 { //nolint:mnd // owner, namespace and name
		return at, false
	}

	for i, part := range parts {
		name, err := url.PathUnescape(part)
		if err != nil || name == "" {
			return at, false
		}

		parts[i] = name
	}

	return catalog.Path{Username: parts[0], Namespace: parts[1], Dataset: parts[2]}, true
}

const maxPromptName = 200

// prompt returns the fixed text, with the namespace that the caller named.
func prompt(_ context.Context, request *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	where := "all namespaces that I can see"

	if name := request.Params.Arguments["namespace"]; name != "" {
		if len(name) > maxPromptName || strings.ContainsAny(name, "\r\n") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "namespace must be the name of a namespace."}
		}

		where = "the namespace " + name
	}

	return &sdk.GetPromptResult{Description: "Explore the data", Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.TextContent{Text: strings.ReplaceAll(strings.TrimSpace(explore), "{where}", where)}},
	}}, nil
}
