package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// history is a table with the expected rows of each snapshot.
type history struct {
	place

	at    Table
	next  int                 // number of the next row
	rows  map[uuid.UUID][]int // rows of each snapshot
	times map[uuid.UUID]time.Time
	order []uuid.UUID
	wide  int              // number of columns
	known map[string][]int // rows of the files that were read

	random *rand.Rand
}

func newHistory(t *testing.T) *history {
	t.Helper()

	return &history{
		place: newPlace(t), at: newTable(), rows: map[uuid.UUID][]int{}, times: map[uuid.UUID]time.Time{}, wide: 1,
		known: map[string][]int{}, random: newRandom(t),
	}
}

func (h *history) current() []int {
	if len(h.order) == 0 {
		return nil
	}

	return h.rows[h.order[len(h.order)-1]]
}

func (h *history) made(s Snapshot, rows []int) {
	h.t.Helper()
	require.Equal(h.t, int64(len(rows)), s.Rows)

	h.rows[s.ID], h.times[s.ID] = rows, s.CommittedAt
	h.order = append(h.order, s.ID)
	h.clock.advance(time.Second)
}

// add commits some files of some rows. The source name of a row is the number of the first row of its file.
func (h *history) add(mode Mode) {
	h.t.Helper()

	want := []Column{{Name: "id", Type: Bigint}}
	for i := range h.wide {
		want = append(want, Column{Name: fmt.Sprintf("c%d", i), Type: Varchar})
	}

	columns, err := h.Plan(h.t.Context(), h.at, want, mode)
	require.NoError(h.t, err)

	rows := slices.Clone(h.current())
	if mode == Replace {
		rows = nil
	}

	var ingestions []uuid.UUID

	for range 1 + h.random.IntN(3) {
		n := 1 + h.random.IntN(4)
		source := Source{File: uuid.New(), Name: strconv.Itoa(h.next), FirstRow: 1, Places: Places{Skipped: []int64{2}, Pages: []int64{1, 3}}}

		ingestion, err := stageFrom(h.t.Context(), h.Lake, h.at, columns, parquetFile(h.t, columns, h.next, n), source)
		require.NoError(h.t, err)

		ingestions = append(ingestions, ingestion)

		for range n {
			rows = append(rows, h.next)
			h.next++
		}
	}

	h.made(h.commit(Change{Table: h.at, Mode: mode, Ingestions: ingestions}), rows)
}

// merge stages a file with the rows of some adjacent files of the current snapshot.
func (h *history) merge() (change Change, ok bool) {
	h.t.Helper()

	snapshot, files := h.place.current(h.at)
	if len(files) < 2 {
		return change, false
	}

	from := h.random.IntN(len(files) - 1)
	run := files[from : from+2+h.random.IntN(min(len(files)-from-1, 6))]

	change = Change{Table: h.at, Mode: Compacted, Ingestions: []uuid.UUID{uuid.New()}, Files: run}
	h.stageMerged(change, snapshot.Columns)

	return change, true
}

func (h *history) stageMerged(change Change, columns []Column) {
	h.t.Helper()

	var (
		ctx    = h.t.Context()
		rows   []int
		staged Staged
		err    error
	)

	for _, f := range change.Files {
		rows = append(rows, h.read(f)...)
	}

	path := filepath.Join(h.t.TempDir(), "merged.parquet")
	require.NoError(h.t, os.WriteFile(path, parquetOfRows(h.t, columns, rows), 0o600))

	require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error {
		staged, err = h.StageTx(ctx, tx, h.at, change.Ingestions[0], Source{})

		return err
	}))

	staged, err = h.Write(ctx, staged, path, columns)
	require.NoError(h.t, err)
	require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.TakeOverTx(ctx, tx, staged, change.Files) }))
}

// read returns the ids of the rows of a file.
func (h *history) read(f File) (rows []int) {
	h.t.Helper()

	object, err := h.store.Read(h.t.Context(), f.Key, 0, -1)
	require.NoError(h.t, err, f.Key)

	content, err := io.ReadAll(object)
	require.NoError(h.t, errors.Join(err, object.Close()))

	reader, err := file.NewParquetReader(bytes.NewReader(content))
	require.NoError(h.t, err)

	arrowReader, err := pqarrow.NewFileReader(reader, pqarrow.ArrowReadProperties{}, arrowmemory.DefaultAllocator)
	require.NoError(h.t, err)

	read, err := arrowReader.ReadTable(h.t.Context())
	require.NoError(h.t, err)

	defer read.Release()

	for _, chunk := range read.Column(read.Schema().FieldIndices("id")[0]).Data().Chunks() {
		ids, isWhole := chunk.(*array.Int64)
		require.True(h.t, isWhole)

		for _, id := range ids.Int64Values() {
			rows = append(rows, int(id))
		}
	}

	return rows
}

func parquetOfRows(tb testing.TB, columns []Column, rows []int) []byte {
	tb.Helper()

	fields := make([]arrow.Field, len(columns))
	for i, column := range columns {
		fields[i] = arrow.Field{
			Name: column.Name, Type: arrowType(column.Type), Nullable: true,
			Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(column.ID)}),
		}
	}

	builder := array.NewRecordBuilder(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer builder.Release()

	for _, row := range rows {
		for i := range fields {
			appendValue(builder.Field(i), row)
		}
	}

	record := builder.NewRecordBatch()
	defer record.Release()

	return parquetRecord(tb, record)
}

// check verifies the rows and the provenance of every snapshot that is left.
func (h *history) check() {
	h.t.Helper()

	var left []Snapshot

	require.NoError(h.t, h.db.Do(h.t.Context(), func(q postgres.Querier) (err error) {
		left, err = h.Snapshots(h.t.Context(), q, h.at, 0, len(h.order)+1)

		return err
	}))
	require.LessOrEqual(h.t, len(left), len(h.order))

	for i, s := range left {
		require.Equal(h.t, h.order[len(h.order)-1-i], s.ID, "none is missing between two that are there")
		require.Equal(h.t, int64(len(h.order)-i), s.Sequence)

		files, err := h.Files(h.t.Context(), h.at, s.ID)
		require.NoError(h.t, err)
		require.Len(h.t, files, s.Files)

		if i == 0 {
			_, current := h.place.current(h.at)
			require.Len(h.t, current, len(files))
			require.True(h.t, len(files) == 0 || slices.Equal(files, current))
		}

		h.checkRows(files, h.rows[s.ID])
	}

	for _, id := range h.order[:len(h.order)-len(left)] {
		_, err := h.Files(h.t.Context(), h.at, id)
		require.Equal(h.t, fault.NotFound, fault.From(err).Code)

		_, err = h.Commit(h.t.Context(), Change{Table: h.at, Mode: Restore, Snapshot: id}, noMore)
		require.Equal(h.t, fault.NotFound, fault.From(err).Code)
	}

	h.checkIceberg(left)
}

func (h *history) checkRows(files []File, want []int) {
	h.t.Helper()

	var rows []int

	for _, f := range files {
		if _, isKnown := h.known[f.Key]; !isKnown {
			h.known[f.Key] = h.read(f)
			h.checkSources(f, h.known[f.Key])
		}

		rows = append(rows, h.known[f.Key]...)
	}

	require.True(h.t, slices.Equal(want, rows), "%v is not %v", rows, want)
}

// checkSources verifies the provenance of a file. In these tests the name of each source is the number of its first
// row.
func (h *history) checkSources(f File, ids []int) {
	h.t.Helper()
	require.Len(h.t, ids, int(f.Rows))

	for n, id := range ids {
		name, number := f.Name, int64(n)

		if f.Compacted {
			var parts []Part

			require.NoError(h.t, h.db.Do(h.t.Context(), func(q postgres.Querier) (err error) {
				parts, err = h.Parts(h.t.Context(), q, h.at, f.Key, number)

				return err
			}))

			at := slices.IndexFunc(parts, func(p Part) bool { return p.First <= number && number < p.First+p.Rows })
			require.GreaterOrEqual(h.t, at, 0)
			require.NotEqual(h.t, uuid.Nil, parts[at].File)
			require.Equal(h.t, []int64{1, 3}, parts[at].Pages)

			name, number = parts[at].Name, h.position(parts[at], number)
		}

		first, err := strconv.Atoi(name)
		require.NoError(h.t, err)
		require.Equal(h.t, id, first+int(number), "the row %d of %s", n, f.Key)
	}
}

// position returns the position of a row among the rows of its source that were loaded: all but the second.
func (h *history) position(p Part, row int64) int64 {
	h.t.Helper()

	number := p.FirstRow + row - p.First
	for _, skipped := range p.Skipped {
		if skipped <= number {
			number++
		}
	}

	require.NotEqual(h.t, int64(2), number)

	return max(number-2, 0)
}

// remove stages some files of the current snapshot once more, without some of their rows. It returns the rows that are left.
func (h *history) remove() (change Change, rows []int) {
	h.t.Helper()

	var (
		ctx             = h.t.Context()
		snapshot, files = h.place.current(h.at)
		id              = uuid.New()
	)

	change = Change{Table: h.at, Mode: Deleted, Base: snapshot.ID, Rewritten: id, Ingestions: []uuid.UUID{id}}

	for _, f := range files {
		var (
			all  = h.read(f)
			gone = NewRowSet(f.Rows)
			left []int
		)

		rare := 1 + h.random.IntN(4)

		for n, row := range all {
			if rare == 1 || h.random.IntN(rare) > 1 {
				gone.Add(int64(n))
			} else {
				left = append(left, row)
			}
		}

		if h.random.IntN(2) == 0 || gone.Count() == 0 {
			rows = append(rows, all...)

			continue
		}

		change.Files, change.Removed, rows = append(change.Files, f), change.Removed+gone.Count(), append(rows, left...)

		if len(left) > 0 {
			h.stageWithout(ctx, id, snapshot.Columns, f, gone, left)
		}
	}

	return change, rows
}

func (h *history) stageWithout(ctx context.Context, id uuid.UUID, columns []Column, f File, gone *RowSet, left []int) {
	h.t.Helper()

	path := filepath.Join(h.t.TempDir(), "left.parquet")
	require.NoError(h.t, os.WriteFile(path, parquetOfRows(h.t, columns, left), 0o600))

	var staged Staged

	require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) (err error) {
		staged, err = h.StageTx(ctx, tx, h.at, id, Source{})

		return err
	}))

	staged, err := h.Write(ctx, staged, path, columns)
	require.NoError(h.t, err)
	require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.RewrittenTx(ctx, tx, staged, f, gone) }))
}

// checkIceberg verifies that another reader finds no deleted snapshot, and as many rows in the first and the last one.
func (h *history) checkIceberg(left []Snapshot) {
	h.t.Helper()

	kept := map[int64]Snapshot{}
	for _, s := range left {
		kept[s.Number] = s
	}

	named := h.open(h.at).Metadata().Snapshots()
	for i, s := range named {
		require.Contains(h.t, kept, s.SnapshotID)

		if i == 0 || i == len(named)-1 {
			rows, _ := h.scan(h.at, table.WithSnapshotID(s.SnapshotID))
			require.Equal(h.t, kept[s.SnapshotID].Rows, rows)
		}
	}
}

// needed returns the keys of all objects that some snapshot needs, and of the metadata.
func (h *history) needed() (keys []string) {
	h.t.Helper()

	met := map[string]bool{}

	for _, id := range h.order {
		e, err := h.find(h.t.Context(), h.at, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}

		require.NoError(h.t, err)

		manifests, err := h.recallList(h.t.Context(), e.list)
		require.NoError(h.t, err)

		lists, err := h.manifestKeys(manifests)
		require.NoError(h.t, err)

		files, err := h.keysOf(h.t.Context(), manifests)
		require.NoError(h.t, err)

		for _, key := range slices.Concat([]string{e.list}, lists, files) {
			met[key] = true
		}
	}

	key, err := h.keyOf(h.mustState(h.at).location)
	require.NoError(h.t, err)

	met[key] = true

	for key := range met {
		keys = append(keys, key)
	}

	return keys
}
