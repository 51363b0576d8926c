package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) namespaceCommand() *cobra.Command {
	return group("namespace", "List, create, change and delete namespaces", p.namespaceList(), p.namespaceCreate(), p.namespaceExposure(),
		p.act("rename NAMESPACE NEW_NAME", "Rename a namespace", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
			changed, err := api.Read[api.NamespaceItem](client.UpdateNamespace(ctx, "self", args[0], api.NamespaceChange{Name: &args[1]}))
			if err != nil {
				return err
			}

			return p.done("Renamed %s to %s.", args[0], changed.Name)
		}),
		p.act("delete NAMESPACE", "Delete an empty namespace", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
			if _, err := api.Read[any](client.DeleteNamespace(ctx, "self", args[0])); err != nil {
				return err
			}

			return p.done("Deleted %s. `quern restore %s` restores it; `quern deleted` shows until when.", args[0], args[0])
		}))
}

func (p *program) namespaceList() *cobra.Command {
	var limit int

	command := p.act("list [OWNER]", "List all namespaces that you can see, or those of one owner", cobra.MaximumNArgs(1),
		func(ctx context.Context, client *api.Client, args []string) error {
			page := func(cursor *string) (*http.Response, error) {
				return client.ListAllNamespaces(ctx, &api.ListAllNamespacesParams{Cursor: cursor, Limit: new(int32(100))})
			}
			if len(args) == 1 {
				page = func(cursor *string) (*http.Response, error) {
					return client.ListNamespaces(ctx, args[0], &api.ListNamespacesParams{Cursor: cursor, Limit: new(int32(100))})
				}
			}

			return list(p, api.Pages(func(cursor *string) ([]api.NamespaceItem, *string, error) {
				page, err := api.Read[api.NamespaceList](page(cursor))

				return page.Data, page.NextCursor, err
			}), limit, "No namespaces yet. `quern upload FILE NAMESPACE/DATASET` creates one with its first dataset.",
				column[api.NamespaceItem]{"namespace", func(n api.NamespaceItem) any { return n.Name }},
				column[api.NamespaceItem]{"owner", func(n api.NamespaceItem) any { return n.Username }},
				column[api.NamespaceItem]{"role", func(n api.NamespaceItem) any {
					if n.Role == nil {
						return "some datasets"
					}

					return string(*n.Role)
				}},
				column[api.NamespaceItem]{"models see", func(n api.NamespaceItem) any { return string(n.Exposure) }},
				column[api.NamespaceItem]{"created", func(n api.NamespaceItem) any { return n.CreatedAt }},
			)
		})
	limitFlag(command, &limit)

	return command
}

func (p *program) namespaceCreate() *cobra.Command {
	var exposure string

	command := p.act("create NAMESPACE", "Create a namespace", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		made, err := api.Read[api.NamespaceItem](client.CreateNamespace(ctx, "self", nil, api.NewNamespace{
			Name: args[0], Exposure: given[api.NewNamespaceExposure](exposure),
		}))
		if err != nil {
			return err
		}

		return p.done("Created %s. External models may see: %s.", made.Name, made.Exposure)
	})
	command.Flags().StringVar(&exposure, "exposure", "", "what external models may see: schema, values or rows")

	return command
}

func (p *program) namespaceExposure() *cobra.Command {
	return p.act("exposure NAMESPACE schema|values|rows", "Change what external models may see", cobra.ExactArgs(2),
		func(ctx context.Context, client *api.Client, args []string) error {
			changed, err := api.Read[api.NamespaceItem](client.UpdateNamespace(ctx, "self", args[0], api.NamespaceChange{Exposure: given[api.NamespaceChangeExposure](args[1])}))
			if err != nil {
				return err
			}

			return p.done("Exposure of %s to external models: %s.", changed.Name, changed.Exposure)
		})
}

func limitFlag(command *cobra.Command, limit *int) {
	command.Flags().IntVar(limit, "limit", 200, "maximum number to show; 0 shows all")
}

// given returns a pointer to text, or nil if text is empty.
func given[T ~string](text string) *T {
	if text == "" {
		return nil
	}

	return new(T(text))
}
