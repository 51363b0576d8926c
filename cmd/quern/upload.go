package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/signin"
)

// uploadWish contains the flags of an upload.
type uploadWish struct {
	replace, dryRun, yes bool
	key                  []string
	merge                bool
	parallel             int
	options              api.IngestionOptions
	accept               []string
	nullValues           []string
	types                map[string]string
	header               string
	skipRows             int32
	extract              string
	sample               int32
	draft                bool // a dry run in which a model proposes a definition
}

// parallelParts is how many parts are sent at once.
const parallelParts = 4

func (p *program) uploadCommand() *cobra.Command {
	wish := &uploadWish{}
	texts := map[string]*string{}

	command := p.act("upload PATH... DATASET", "Upload files and load them into a dataset", cobra.MinimumNArgs(2),
		func(ctx context.Context, client *api.Client, args []string) error {
			at, err := datasetName(args[len(args)-1])
			if err != nil {
				return err
			}

			if err := wish.read(texts); err != nil {
				return err
			}

			return p.upload(ctx, client, at, args[:len(args)-1], wish)
		})
	command.Long = `Upload files and load them into a dataset. PATH is a file, a folder with all files below it, or a pattern.
The formats are CSV, TSV, XLSX, JSON, NDJSON, Parquet and documents with tables (PDF, DOCX, HTML, Markdown, EML), also compressed with gzip or zstd. If the dataset does not exist, it is created
when its first rows are loaded.

Before the load, the command shows how the files are interpreted. A doubt with a code, such as loadedBefore, stops the load: on a
terminal you are asked, in a script --accept CODE or --yes loads the files anyway. Give the same command again to continue an
upload that was interrupted, also by Ctrl-C. Each hundred files are loaded as one snapshot: all of them or none. With --replace
and more than a hundred files, the first hundred replace the rows and the others are added, each hundred in its own snapshot.`
	command.Example = `  quern upload orders.csv shop/orders
  quern upload --replace --decimal , --date-format dd.mm.yyyy exports/ shop/orders`

	flags := command.Flags()
	flags.BoolVar(&wish.replace, "replace", false, "replace the rows of the dataset instead of adding to them")
	flags.StringSliceVar(&wish.key, "key", nil, "merge: replace the rows that have the same values in these columns, and add the others")
	flags.BoolVar(&wish.merge, "merge", false, "merge by the key of the dataset")
	flags.BoolVar(&wish.dryRun, "dry-run", false, "upload the files and show how they are interpreted, but load nothing")
	flags.IntVar(&wish.parallel, "parallel", parallelParts, "number of parts to send in parallel")
	flags.Int32Var(&wish.sample, "sample", 0, "with --dry-run and --extract model: let the model read this number of parts of the documents")
	wish.flags(command, texts)
	yesFlag(command, &wish.yes)
	command.MarkFlagsMutuallyExclusive("replace", "key")
	command.MarkFlagsMutuallyExclusive("replace", "merge")

	return command
}

// flags adds the flags that say how to read files.
func (w *uploadWish) flags(command *cobra.Command, texts map[string]*string) {
	flags := command.Flags()
	flags.StringSliceVar(&w.accept, "accept", nil, "accept this doubt: loadedBefore, rowsPresent, otherColumns, missingColumns, notATable, wrappedRows, noRows or all; can be repeated")
	flags.StringSliceVar(&w.nullValues, "null", nil, "text that means a missing value; can be repeated")
	flags.StringToStringVar(&w.types, "type", nil, "type of a column, as COLUMN=TYPE, instead of the detected type; can be repeated")
	flags.StringVar(&w.header, "header", "", "whether the first row contains the column names: yes or no")
	flags.StringVar(&w.extract, "extract", "", "model: a language model reads the rows out of documents, guided by the definition of the dataset")
	flags.Int32Var(&w.skipRows, "skip-rows", 0, "number of rows to skip at the top")

	for flag, help := range map[string]string{
		"delimiter": "character between values", "quote": "character around values", "decimal": "decimal separator", "thousands": "thousands separator",
		"date-format": "format of dates, such as dd.mm.yyyy", "encoding": "character encoding, such as latin1", "sheet": "sheet of a workbook, by name or number",
		"rows-at": "member of a JSON object that contains the rows",
	} {
		texts[flag] = flags.String(flag, "", help)
	}
}

// read converts the flags to options; the service detects what is not given.
func (w *uploadWish) read(texts map[string]*string) error {
	for flag, place := range map[string]**string{
		"delimiter": &w.options.Delimiter, "quote": &w.options.Quote, "decimal": &w.options.Decimal, "thousands": &w.options.Thousands,
		"date-format": &w.options.DateFormat, "encoding": &w.options.Encoding, "sheet": &w.options.Sheet,
		"rows-at": &w.options.RowsAt,
	} {
		*place = given[string](strings.ReplaceAll(*texts[flag], `\t`, "\t"))
	}

	if w.nullValues != nil {
		w.options.NullValues = &w.nullValues
	}

	if w.types != nil {
		w.options.Types = &w.types
	}

	if w.skipRows > 0 {
		w.options.SkipRows = &w.skipRows
	}

	switch w.extract {
	case "":
	case string(api.IngestionOptionsExtractModel):
		w.options.Extract = new(api.IngestionOptionsExtract(w.extract))
	default:
		return usageError{fmt.Errorf("--extract must be model, not %q", w.extract), "quern upload"}
	}

	if w.sample != 0 && (!w.dryRun || w.extract == "") {
		return usageError{errors.New("--sample needs --dry-run and --extract model"), "quern upload"}
	}

	if w.yes {
		w.accept = append(w.accept, acceptAll)
	}

	switch w.header {
	case "":
	case "yes", "no":
		w.options.Header = new(w.header == "yes")
	default:
		return usageError{fmt.Errorf("--header must be yes or no, not %q", w.header), "quern upload"}
	}

	return nil
}

func (p *program) upload(ctx context.Context, client *api.Client, at name, paths []string, wish *uploadWish) error {
	files, empty, err := collect(paths)
	if err != nil {
		return err
	}

	if empty > 0 {
		p.err.printf("%s omitted.\n", counted(int64(empty), "empty file is", "empty files are"))
	}

	isNew, err := p.isNew(ctx, client, at)
	if err != nil {
		return err
	}

	all := batches(files)
	if wish.replace && len(all) > 1 && !wish.dryRun {
		p.err.tellf("%s are loaded in %d snapshots: the first replaces the rows, the others add to them. The dataset is incomplete until the last one is loaded.",
			counted(int64(len(files)), "file", "files"), len(all))
	}

	for i, batch := range all {
		path, err := p.statePath(batch)
		if err != nil {
			return err
		}

		session, err := p.send(ctx, client, batch, path, wish.parallel)
		if err != nil {
			return p.stop(ctx, err, "Stopped. Give the same command again to continue.")
		}

		loading := &loading{program: p, client: client, at: at, wish: wish, session: session, first: i == 0, creates: isNew && i == 0}
		if err := loading.run(ctx, len(batch)); err != nil {
			if loading.declined {
				err = errors.Join(err, forget(path))
			}

			return p.stop(ctx, err, loading.left())
		}

		if err := forget(path); err != nil {
			return err
		}
	}

	return nil
}

// stop prints what happens to the upload after Ctrl-C.
func (p *program) stop(ctx context.Context, err error, what string) error {
	if ctx.Err() != nil {
		p.stopped = true
		p.err.tellf("%s", what)
	}

	return err
}

// isNew reports whether the first load creates the dataset.
func (p *program) isNew(ctx context.Context, client *api.Client, at name) (bool, error) {
	_, err := api.Read[api.Dataset](client.GetDataset(ctx, at.owner, at.namespace, at.dataset))
	if api.IsCode(err, api.NOTFOUND) {
		return true, p.mayCreate(ctx, client, at)
	}

	return false, err
}

// send uploads files, or resumes an interrupted upload of the same files.
func (p *program) send(ctx context.Context, client *api.Client, files []found, path string, parallel int) (uuid.UUID, error) {
	sources, names, total := make([]api.UploadSource, len(files)), make([]string, len(files)), int64(0)
	for i, file := range files {
		sources[i], names[i] = file.UploadSource, file.Path
		total += file.Size
	}

	what := names[0]
	if len(names) > 1 {
		what = fmt.Sprintf("%d files", len(names))
	}

	line, began, resumed := &progress{to: p.err}, time.Now(), int64(0)
	defer line.clear()

	uploader := &api.Uploader{
		Client: client, Parallel: parallel, Store: &api.Retry{Waiting: p.waiting},
		Started: func(session uuid.UUID) error {
			return signin.Write(path, uploadState{Server: p.server, Session: session, Files: names, Begun: time.Now()})
		},
		Progress: func(now api.UploadProgress) {
			resumed = now.Resumed
			done := now.Stored + now.Moving
			line.bar(api.UploadName(what), done, now.Total, done-now.Resumed)
		},
	}

	session, err := p.resume(ctx, uploader, sources, path)
	if err != nil {
		return uuid.Nil, err
	}

	if session == uuid.Nil {
		if session, err = uploader.Send(ctx, sources); err != nil {
			return uuid.Nil, err
		}
	}

	line.clear()

	when := "in " + time.Since(began).Round(time.Second/10).String()

	switch {
	case resumed == total:
		when = "earlier"
	case resumed > 0:
		when += fmt.Sprintf(", %s of it earlier", size(resumed))
	}

	p.err.tellf("Uploaded %s, %s %s.", what, size(total), when)

	return session, nil
}

// resume continues the upload that the state file names. It returns uuid.Nil if there is none, or if it cannot be
// resumed because the service no longer has it, it was aborted or the files differ.
func (p *program) resume(ctx context.Context, uploader *api.Uploader, sources []api.UploadSource, path string) (uuid.UUID, error) {
	state, known := readState(path)
	if !known {
		return uuid.Nil, nil
	}

	// After any other error, such as a connection that broke, the parts that were sent are still there.
	err := uploader.Resume(ctx, state.Session, sources)
	if !errors.Is(err, api.ErrCannotResume) && !api.IsCode(err, api.NOTFOUND) && !api.IsCode(err, api.INVALIDSTATE) {
		return state.Session, err
	}

	p.err.tellf("The upload of %s cannot be resumed (%v); it starts again.", moment(state.Begun), err)

	return uuid.Nil, nil
}
