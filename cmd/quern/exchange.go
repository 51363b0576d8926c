package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) semanticsCommand() *cobra.Command {
	return group("semantics", "Exchange what datasets mean with other tools", p.semanticsExport(), p.semanticsImport())
}

func (p *program) semanticsExport() *cobra.Command {
	command := p.act("export NAMESPACE", "Write what the datasets of a namespace mean, and its verified questions", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := namespaceName(args[0])
		if err != nil {
			return err
		}

		found, err := api.Read[api.SemanticsDocument](client.ExportSemantics(ctx, at.owner, at.namespace))
		if err != nil {
			return err
		}

		if p.format != "table" && p.format != "csv" {
			return one(p, found, func() {})
		}

		_, err = os.Stdout.WriteString(found.Document)

		return err
	})
	command.Long = `Write a document of the Open Semantic Interchange (Apache Ossie) to standard output, as YAML. Other tools read it. It has what people said
about the datasets that you may see, and no drafts.

	quern semantics export shop > shop.yaml`

	return command
}

func (p *program) semanticsImport() *cobra.Command {
	var isTrial bool

	command := p.act("import NAMESPACE FILE", "Read what datasets mean from a document of another tool", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error { //nolint:mnd // both arguments
		at, err := namespaceName(args[0])
		if err != nil {
			return err
		}

		text, err := readDocument(args[1])
		if err != nil {
			return err
		}

		done, err := importAll(ctx, client, at, api.SemanticsImport{Document: text, DryRun: &isTrial})

		return orShow(err, func() error { return p.showImported(done) })
	})
	command.Long = `Read a document of the Open Semantic Interchange (Apache Ossie), as YAML or JSON; - for standard input. Entries are added and changed, and none is
removed. What is not imported is listed with the reason. With --dry-run nothing is changed.

	quern semantics import shop model.yaml --dry-run
	quern semantics import shop model.yaml`
	command.Flags().BoolVar(&isTrial, "dry-run", false, "only show what would change")

	return command
}

func readDocument(file string) (string, error) {
	content, err := os.ReadFile(file)
	if file == "-" {
		content, err = io.ReadAll(os.Stdin)
	}

	if err == nil && len(content) == 0 {
		err = errors.New("the document is empty")
	}

	return string(content), err
}

// importAll repeats the import while verified questions are left. A dry run is made once, because it leaves the same ones each time.
func importAll(ctx context.Context, client *api.Client, at name, body api.SemanticsImport) (all api.ImportedSemantics, err error) {
	for {
		done, err := api.Read[api.ImportedSemantics](client.ImportSemantics(ctx, at.owner, at.namespace, body))
		if err != nil {
			return all, err
		}

		all.DryRun, all.More, all.NotImported = done.DryRun, done.More, done.NotImported
		all.Datasets = append(all.Datasets, done.Datasets...)
		all.Verified = append(all.Verified, done.Verified...)

		if !done.More || done.DryRun || len(done.Verified) == 0 {
			return all, nil
		}
	}
}

func (p *program) showImported(done api.ImportedSemantics) error {
	type row struct{ dataset, entry, from, to string }

	var rows []row

	for _, d := range done.Datasets {
		for _, c := range d.Changes {
			rows = append(rows, row{d.Dataset, (string(c.Kind) + " " + c.Name), valueOf(c.From), c.To})
		}
	}

	for _, q := range done.Verified {
		rows = append(rows, row{"", "verified question", "", string(q.Change) + ": " + q.Question})
	}

	columns := []column[row]{
		{"dataset", func(r row) any { return r.dataset }},
		{"entry", func(r row) any { return r.entry }},
		{"from", func(r row) any { return r.from }},
		{"to", func(r row) any { return r.to }},
	}

	if p.format == "csv" {
		heads, list := cells(rows, columns)

		return p.csv(heads, list)
	}

	return one(p, done, func() {
		if len(rows) > 0 {
			p.table(cells(rows, columns))
		} else {
			p.out.printf("Nothing changes.\n")
		}

		if len(done.NotImported) > 0 {
			p.out.printf("\n")
			p.table(cells(done.NotImported, []column[api.NotImported]{
				{"not imported", func(n api.NotImported) any { return n.Entry }},
				{"reason", func(n api.NotImported) any { return n.Reason }},
			}))
		}

		switch {
		case done.DryRun && done.More:
			p.out.printf("\nNothing was changed. Only the first verified questions were checked.\n")
		case done.DryRun:
			p.out.printf("\nNothing was changed.\n")
		}
	})
}
