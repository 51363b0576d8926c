package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) auditCommand() *cobra.Command {
	var (
		limit   int
		changes bool
	)

	command := p.act("audit [NAMESPACE[/DATASET]]", "Show what happened to your data, newest first", cobra.MaximumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		parameters := api.ListAuditParams{Limit: new(int32(100)), Reads: new(!changes)}

		if len(args) == 1 {
			namespace, dataset, found := strings.Cut(args[0], "/")
			if parameters.Namespace = &namespace; found {
				parameters.Dataset = &dataset
			}
		}

		return list(p, api.Pages(func(cursor *string) ([]api.AuditEntry, *string, error) {
			parameters.Cursor = cursor
			page, err := api.Read[api.AuditList](client.ListAudit(ctx, &parameters))

			return page.Data, page.NextCursor, err
		}), limit, "No audit entries yet.",
			column[api.AuditEntry]{"at", func(e api.AuditEntry) any { return e.At }},
			column[api.AuditEntry]{"who", func(e api.AuditEntry) any { return e.Username }},
			column[api.AuditEntry]{"what", func(e api.AuditEntry) any { return e.Action }},
			column[api.AuditEntry]{"to", func(e api.AuditEntry) any { return auditTarget(e.Target) }},
			column[api.AuditEntry]{"detail", func(e api.AuditEntry) any { return e.Detail }},
			column[api.AuditEntry]{"outcome", func(e api.AuditEntry) any { return e.Outcome }},
			column[api.AuditEntry]{"from", func(e api.AuditEntry) any { return e.Address }},
		)
	})
	command.Flags().IntVar(&limit, "limit", 50, "maximum number to show; 0 shows all")
	command.Flags().BoolVar(&changes, "changes", false, "leave out reads of rows, profiles, answers and queries")

	return command
}

// auditTarget returns the name of the target, or its kind if it has no name.
func auditTarget(target api.AuditTarget) string {
	var parts []string

	for _, part := range []*string{target.Namespace, target.Dataset} {
		if part != nil && *part != "" {
			parts = append(parts, *part)
		}
	}

	if len(parts) == 0 {
		return string(target.Kind)
	}

	return strings.Join(parts, "/")
}
