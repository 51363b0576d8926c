package app

import (
	"context"

	"quern.dev/quern/internal/server"
	"quern.dev/quern/web"
)

// newConsole returns the configuration of the web pages, or nil if they are turned off.
func (a *App) newConsole(ctx context.Context) *server.Console {
	if !a.config.Console.Enabled {
		return nil
	}

	files, built := web.Files()
	if !built {
		a.log.WarnContext(ctx, "the console is not built into this program: / shows how to build it")
	}

	return &server.Console{
		Files: files, ClientID: a.config.Console.ClientID, Scope: a.config.Console.Scope, Store: a.store.Origin(), Model: a.models.Configured(),
	}
}
