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

// named returns the sources with these names, and all without names.
func (p *program) named(have present, names []string) (wanted []api.Source, err error) {
	if len(names) == 0 {
		return have.sources, nil
	}

	for _, name := range names {
		found := have.source(name)
		if found == nil {
			return nil, exitError{exitNotFound, fmt.Sprintf("you have no source %q", p.out.clean(name)), "`quern source list` shows the names."}
		}

		wanted = append(wanted, *found)
	}

	return wanted, nil
}

func (p *program) sourceExport() *cobra.Command {
	command := p.act("export [SOURCE...]", "Write sources and their connections as YAML", cobra.ArbitraryArgs, func(ctx context.Context, client *api.Client, args []string) error {
		have, err := p.present(ctx, client)
		if err != nil {
			return err
		}

		wanted, err := p.named(have, args)
		if err != nil {
			return err
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

		var lost []string

		for _, s := range wanted {
			entry := sourceEntryOf(s, have.names())
			if entry.Connection == "" {
				lost = append(lost, s.Name)

				continue
			}

			file.Sources = append(file.Sources, entry)
		}

		if len(file.Connections)+len(file.Sources) > 0 || len(lost) == 0 {
			text, err := file.yaml()
			if err != nil {
				return err
			}

			p.out.printf("# Connections and sources, for `quern source apply`. Secrets are not part of this file.\n%s", text)
		}

		if len(lost) == 0 {
			return nil
		}

		return exitError{
			exitState, fmt.Sprintf("left out, because their connections were deleted or are no longer shared with you: %s", strings.Join(lost, ", ")),
			"`quern source change NAME --connection OTHER` gives a source of files another connection; `quern source delete NAME` deletes a source.",
		}
	})
	command.Long = `Write sources and their connections as YAML, to keep them in a repository or to make them elsewhere with ` + "`quern source apply`" + `. Without
SOURCE, all of them. Secrets and what was loaded are not part of the file. Sources whose connection is gone are left out: the command names them and
ends with exit code 6.`

	return command
}
