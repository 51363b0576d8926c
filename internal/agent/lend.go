package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

const (
	maxExample  = 1500 // bytes of one verified question with its statement
	maxExamples = 3000 // bytes of all of them
	lentRows    = 5    // rows of the turn before
	maxLentRows = 2000 // bytes of these rows
)

// lent is what a model gets beside the datasets: verified questions that are near, and rows of the turn before. Both can contain values of
// datasets, so these are recorded as read before the model sees them.
type lent struct{ examples, rows string }

func (q *inquiry) lend(ctx context.Context, around surroundings) (found lent, err error) {
	var reads []query.Read

	found.examples, reads = q.examples(ctx, around)

	rows, more := q.rowsBefore(around)
	found.rows = rows

	return found, noteQuoted(ctx, q.recorder.log, slices.Concat(reads, more))
}

// examples returns the verified questions that are near. The model may see values of all datasets of each of them.
func (q *inquiry) examples(ctx context.Context, around surroundings) (text string, reads []query.Read) {
	if q.tools.Verified == nil {
		return "", nil
	}

	near, err := q.tools.Verified.Near(ctx, q.who, q.question.path(), q.question.Text)
	if err != nil { // the question can be answered without them
		return "", nil
	}

	for _, one := range near {
		example := exampleOf(one)
		if len(example) > maxExample || len(text)+len(example) > maxExamples || !around.exposes(one.Reads, llm.ExposeValues) {
			continue
		}

		text += example
		reads = append(reads, one.Reads...)
	}

	if text != "" {
		text = "\nVerified questions that are similar:\n" + text
	}

	return text, unique(reads)
}

func exampleOf(one verified.Near) string {
	return fmt.Sprintf("- %s\n  %s\n", one.Text, strings.Join(strings.Fields(one.Query), " "))
}

func unique(reads []query.Read) (list []query.Read) {
	for _, read := range reads {
		if !slices.ContainsFunc(list, func(r query.Read) bool { return r.ID == read.ID }) {
			list = append(list, read)
		}
	}

	return list
}

// exposes reports whether a model may see this much of all datasets.
func (s surroundings) exposes(reads []query.Read, need llm.Exposure) bool {
	return !slices.ContainsFunc(reads, func(r query.Read) bool { return s.exposureOf(r.ID) < need })
}

// rowsBefore returns the first rows of the turn before. The model must be allowed to see rows of all datasets that it read, and the question
// must be about these datasets.
func (q *inquiry) rowsBefore(around surroundings) (text string, reads []query.Read) {
	turns := q.question.Earlier
	if len(turns) == 0 || turns[len(turns)-1].Last == nil || !around.allows(turns[len(turns)-1].Read) {
		return "", nil
	}

	for id := range turns[len(turns)-1].Read {
		n := slices.IndexFunc(around.datasets, func(d query.About) bool { return d.ID == id })
		if n < 0 {
			return "", nil
		}

		reads = append(reads, around.readOf(n))
	}

	if text = rowsOf(*turns[len(turns)-1].Last); text == "" {
		return "", nil
	}

	return text, reads
}

// readOf returns the current snapshot of a dataset.
func (s surroundings) readOf(index int) query.Read {
	d := s.datasets[index]
	seconds, nanoseconds := d.SnapshotID.Time().UnixTime()

	return query.Read{
		Account: d.Account, ID: d.ID, Dataset: d.Owner + "/" + d.Namespace + "/" + d.Name, Snapshot: d.SnapshotID,
		CommittedAt: time.Unix(seconds, nanoseconds).UTC(),
	}
}

// rowsOf returns the first rows of a step as text, "" if it has none that fit.
func rowsOf(step Step) string {
	list, size := []json.RawMessage{}, 0

	for _, row := range step.Data[:min(len(step.Data), lentRows)] {
		row = query.Unmark(row)
		if size += len(row); size > maxLentRows {
			break
		}

		list = append(list, row)
	}

	if len(list) == 0 {
		return ""
	}

	return fmt.Sprintf("The last of these found %d rows. The first ones, as they were then:\n%s\n", step.RowCount, plainJSON(list))
}

// exposureOf returns how much the model may see of a dataset.
func (s surroundings) exposureOf(id uuid.UUID) llm.Exposure {
	if exposure, known := s.exposure[id]; known {
		return exposure
	}

	return s.others
}
