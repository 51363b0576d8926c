package main

import (
	"context"
	"errors"
	"iter"
	"path"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) connectionFiles() *cobra.Command {
	var (
		limit           int
		prefix, pattern string
	)

	command := p.onConnection("files", "List the files that a connection sees", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		if _, err := path.Match(pattern, ""); err != nil {
			return usageError{errors.New("--pattern is not a pattern: a [ must have its ], and \\ must be followed by a character"), "quern connection files"}
		}

		pages := api.Pages(func(cursor *string) ([]api.ConnectionFile, *string, error) {
			page, err := api.Read[api.ConnectionFileList](client.ListConnectionFiles(ctx, id, &api.ListConnectionFilesParams{
				Prefix: given[string](prefix), Cursor: cursor, Limit: new(int32(100)),
			}))

			return page.Data, page.NextCursor, err
		})

		none := "No files."
		if pattern != "" {
			pages, none = matching(pages, prefix, pattern), "No file matches."
		}

		return list(p, pages, limit, none,
			column[api.ConnectionFile]{"path", func(f api.ConnectionFile) any { return f.Path }},
			column[api.ConnectionFile]{"bytes", func(f api.ConnectionFile) any { return f.Size }},
			column[api.ConnectionFile]{"modified", func(f api.ConnectionFile) any { return f.ModifiedAt }},
		)
	})
	command.Flags().StringVar(&prefix, "prefix", "", "only files whose paths begin with this")
	command.Flags().StringVar(&pattern, "pattern", "", "only files that a source with this prefix and pattern would load, such as '*.csv'")
	limitFlag(command, &limit)

	return command
}

// matching returns the files that a source with this prefix and pattern would load.
func matching(files iter.Seq2[api.ConnectionFile, error], prefix, pattern string) iter.Seq2[api.ConnectionFile, error] {
	return func(yield func(api.ConnectionFile, error) bool) {
		for file, err := range files {
			if (err != nil || isWanted(file, prefix, pattern)) && !yield(file, err) {
				return
			}
		}
	}
}

// isWanted reports what wants of package source in the service does.
func isWanted(file api.ConnectionFile, prefix, pattern string) bool {
	rest, below := strings.CutPrefix(file.Path, prefix)
	if !below || strings.HasSuffix(file.Path, "/") || file.Size == 0 {
		return false
	}

	if !strings.Contains(pattern, "/") {
		rest = path.Base(file.Path)
	}

	matches, err := path.Match(pattern, rest)

	return err == nil && matches
}
