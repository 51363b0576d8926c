package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) uploadsCommand() *cobra.Command {
	var limit int

	command := p.act("uploads", "List your upload sessions, newest first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, api.Pages(func(cursor *string) ([]api.UploadItem, *string, error) {
			page, err := api.Read[api.UploadList](client.ListUploads(ctx, &api.ListUploadsParams{Cursor: cursor, Limit: new(int32(100))}))

			return page.Data, page.NextCursor, err
		}), limit, "No upload sessions yet. `quern upload` starts one.",
			column[api.UploadItem]{"session", func(u api.UploadItem) any { return u.SessionID }},
			column[api.UploadItem]{"status", func(u api.UploadItem) any { return string(u.SessionStatus) }},
			column[api.UploadItem]{"at", func(u api.UploadItem) any { return u.CreatedAt }},
			column[api.UploadItem]{"files", func(u api.UploadItem) any { return len(u.Files) }},
			column[api.UploadItem]{"bytes", func(u api.UploadItem) any {
				total := int64(0)
				for _, file := range u.Files {
					total += file.Size
				}

				return total
			}},
			column[api.UploadItem]{"first file", func(u api.UploadItem) any {
				if len(u.Files) == 0 {
					return ""
				}

				return u.Files[0].Filename
			}},
		)
	})
	limitFlag(command, &limit)

	return command
}
