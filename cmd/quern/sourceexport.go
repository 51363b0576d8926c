package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// present is what the caller has.
type present struct {
	self        string
	connections []api.Connection
	sources     []api.Source
}

func (p *program) present(ctx context.Context, client *api.Client) (have present, err error) {
	me, err := api.Read[api.Me](client.GetMe(ctx))
	if err != nil {
		return have, err
	}

	have.self = me.Username

	for one, err := range allConnections(ctx, client) {
		if err != nil {
			return have, err
		}

		have.connections = append(have.connections, one)
	}

	for one, err := range allSources(ctx, client) {
		if err != nil {
			return have, err
		}

		have.sources = append(have.sources, one)
	}

	return have, nil
}

func (h present) connection(name string) *api.Connection {
	if at := slices.IndexFunc(h.connections, func(c api.Connection) bool { return strings.EqualFold(fullName(c), name) }); at >= 0 {
		return &h.connections[at]
	}

	return nil
}

func (h present) source(name string) *api.Source {
	if at := slices.IndexFunc(h.sources, func(s api.Source) bool { return strings.EqualFold(s.Name, name) }); at >= 0 {
		return &h.sources[at]
	}

	return nil
}

// names returns the names of the connections by id.
func (h present) names() map[string]string {
	names := map[string]string{}
	for _, c := range h.connections {
		names[c.ID.String()] = fullName(c)
	}

	return names
}

func (p *program) sourceExport() *cobra.Command {
	command := p.act("export [SOURCE...]", "Write sources and their connections as YAML", cobra.ArbitraryArgs, func(ctx context.Context, client *api.Client, args []string) error {
		have, err := p.present(ctx, client)
		if err != nil {
			return err
		}

		wanted := have.sources
		if len(args) > 0 {
			wanted = nil

			for _, name := range args {
				found := have.source(name)
				if found == nil {
					return exitError{exitNotFound, fmt.Sprintf("you have no source %q", p.out.clean(name)), "`quern source list` shows the names."}
				}

				wanted = append(wanted, *found)
			}
		}

		var file configuration

		for _, c := range have.connections {
			if c.Owner != nil { // its owner exports it
				continue
			}

			if len(args) == 0 || slices.ContainsFunc(wanted, func(s api.Source) bool { return s.ConnectionID == c.ID }) {
				file.Connections = append(file.Connections, connectionEntryOf(c))
			}
		}

		for _, s := range wanted {
			entry := sourceEntryOf(s, have.names())
			if entry.Connection == "" {
				return exitError{exitState, fmt.Sprintf("the connection of the source %s was deleted, or is no longer shared with you", p.out.clean(s.Name)), "`quern source delete` deletes the source."}
			}

			file.Sources = append(file.Sources, entry)
		}

		text, err := file.yaml()
		if err != nil {
			return err
		}

		p.out.printf("# Connections and sources, for `quern source apply`. Secrets are not part of this file.\n%s", text)

		return nil
	})
	command.Long = `Write sources and their connections as YAML, to keep them in a repository or to make them elsewhere with ` + "`quern source apply`" + `. Without
SOURCE, all of them. Secrets and what was loaded are not part of the file.`

	return command
}
