package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

func backup() *cobra.Command {
	command := inspect("backup FOLDER", "Write a backup of the database and its objects to a new folder; the service may run meanwhile", cobra.ExactArgs(1),
		func(ctx context.Context, i app.Inspector, args []string) error { return i.Backup(ctx, args[0]) })
	command.Long = `Write a backup of the database and its objects to a new folder. The service may run meanwhile. The backup shows one moment: that at which
the command dumps the database with pg_dump, which must be installed. It connects as the owner of the schema. Run the command again with
the same folder to continue a backup that was interrupted. See docs/backup.md.`

	return command
}

func restore() *cobra.Command {
	command := inspect("restore FOLDER", "Restore a backup into an empty database and an empty bucket or prefix", cobra.ExactArgs(1),
		func(ctx context.Context, i app.Inspector, args []string) error { return i.Restore(ctx, args[0]) })
	command.Long = `Restore a backup into the database and the bucket and prefix that the settings name; both must be empty. The location may have another name
than the original, whose addresses in tables are then changed. The result is an installation of its own: it cannot remove anything
from the original, which may run meanwhile. The command needs pg_restore, and a role that owns the database. Run the command again to continue a restore that was interrupted. See docs/backup.md.`

	return command
}
