package lake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
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
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func TestCompactable(t *testing.T) {
	t.Parallel()

	const kib, mib = 1 << 10, 1 << 20

	for name, test := range map[string]struct {
		sizes    []int64
		from, to int
	}{
		"none":                        {},
		"too few":                     {sizes: slices.Repeat([]int64{kib}, 3)},
		"small ones":                  {sizes: slices.Repeat([]int64{kib}, 4), to: 4},
		"all that follow":             {sizes: slices.Repeat([]int64{kib}, 100), to: 100},
		"no more than a child takes":  {sizes: slices.Repeat([]int64{kib}, 900), to: 500},
		"after a large one":           {sizes: append([]int64{200 * mib}, slices.Repeat([]int64{kib}, 4)...), from: 1, to: 5},
		"not with a larger one":       {sizes: append([]int64{30 * mib}, slices.Repeat([]int64{kib}, 3)...)},
		"a larger one is passed over": {sizes: append([]int64{30 * mib}, slices.Repeat([]int64{kib}, 5)...), from: 1, to: 6},
		"up to the size":              {sizes: slices.Repeat([]int64{40 * mib}, 9), to: 3},
		"half the size is enough":     {sizes: slices.Repeat([]int64{64 * mib}, 20)},
		"a large one between":         {sizes: slices.Concat(slices.Repeat([]int64{kib}, 3), []int64{90 * mib}, slices.Repeat([]int64{kib}, 3))},
	} {
		files := make([]File, len(test.sizes))
		for i, size := range test.sizes {
			files[i] = File{Key: strconv.Itoa(i), Size: size}
		}

		found := Compactable(files)
		require.Len(t, found, test.to-test.from, name)

		if len(found) > 0 {
			require.Equal(t, strconv.Itoa(test.from), found[0].Key, name)
		}
	}
}

// TestCompactableStaysSmall: however large posts are, there are never many files, and what is written for it is not
// much more than the rows.
func TestCompactableStaysSmall(t *testing.T) {
	t.Parallel()

	for _, size := range []int64{1 << 10, 50 << 10, 3 << 20, 20 << 20} {
		var (
			files         []File
			came, written int64
			most          int
		)

		for range 4000 {
			files, came = append(files, File{Size: size}), came+size+fileCost

			for found := Compactable(files); found != nil; found = Compactable(files) {
				at := 0
				for &files[at] != &found[0] {
					at++
				}

				sum := int64(0)
				for _, f := range found {
					sum += f.Size
				}

				written += sum + fileCost
				files = slices.Replace(files, at, at+len(found), File{Size: sum})
			}

			large := 0
			for _, f := range files {
				if f.Size >= compactTo/2-fileCost {
					large++
				}
			}

			most = max(most, len(files)-large)
		}

		t.Logf("%d bytes: at most %d small files, what is written for them is %.1f times what came", size, most, float64(written)/float64(came))
		require.LessOrEqual(t, most, 30)
		require.Less(t, float64(written)/float64(came), 12.0)
	}
}

// history is a table with what every snapshot of it must have.
type history struct {
	place

	at    Table
	next  int                 // the row that comes next
	rows  map[uuid.UUID][]int // of each snapshot
	times map[uuid.UUID]time.Time
	order []uuid.UUID
	wide  int              // columns
	known map[string][]int // rows of files that were looked at
}

func newHistory(t *testing.T) *history {
	t.Helper()

	return &history{place: newPlace(t), at: newTable(), rows: map[uuid.UUID][]int{}, times: map[uuid.UUID]time.Time{}, wide: 1, known: map[string][]int{}}
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

// add commits some files of some rows. The name of a row's source is the number of its file's first row.
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

	for range 1 + rand.IntN(3) {
		n := 1 + rand.IntN(4)
		source := Source{File: uuid.New(), Name: strconv.Itoa(h.next), FirstRow: 1, Skipped: []int64{2}}

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

// merge stages a file with the rows of some neighbours in the current snapshot.
func (h *history) merge() (change Change, ok bool) {
	h.t.Helper()

	snapshot, files := h.place.current(h.at)
	if len(files) < 2 {
		return change, false
	}

	from := rand.IntN(len(files) - 1)
	run := files[from : from+2+rand.IntN(min(len(files)-from-1, 6))]

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

// read returns the ids of a file's rows.
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

// check reads every snapshot that is left, and where its rows come from.
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

// checkSources: the names of sources are the numbers of their first rows.
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
			require.Equal(h.t, []int64{2}, parts[at].Skipped)
			require.Equal(h.t, int64(1), parts[at].FirstRow)
			require.NotEqual(h.t, uuid.Nil, parts[at].File)

			name, number = parts[at].Name, number-parts[at].First
		}

		first, err := strconv.Atoi(name)
		require.NoError(h.t, err)
		require.Equal(h.t, id, first+int(number), "the row %d of %s", n, f.Key)
	}
}

// checkIceberg: another reader finds the same rows, and no snapshot that is not there any more.
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

// needed are the keys of everything that some snapshot needs, and of the metadata.
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

func (h *history) step(age time.Duration) {
	h.t.Helper()

	ctx := h.t.Context()

	switch n := rand.IntN(100); {
	case len(h.order) == 0 || n < 40:
		h.add(Append)
	case n < 44:
		h.add(Replace)
	case n < 47:
		h.made(h.commit(Change{Table: h.at, Mode: Clear}), nil)
	case n < 50:
		h.wide++
	case n < 58:
		id := h.order[rand.IntN(len(h.order))]

		made, err := h.Commit(ctx, Change{Table: h.at, Mode: Restore, Snapshot: id}, noMore)
		if !fault.Is(err, fault.NotFound) {
			require.NoError(h.t, err)
			h.made(made, h.rows[id])
		}
	case n < 82:
		if change, ok := h.merge(); ok {
			h.made(h.commit(change), h.current())
		}
	case n < 86: // one that comes too late
		if change, ok := h.merge(); ok {
			h.add(Replace)

			_, err := h.Commit(ctx, change, noMore)
			require.ErrorIs(h.t, err, ErrReplaced)
			require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.DropTx(ctx, tx, h.at, change.Ingestions[0]) }))
		}
	case n < 92:
		h.clock.advance(time.Duration(rand.IntN(int(age))))
	case n < 97:
		require.NoError(h.t, h.Expire(ctx, age))
	default:
		require.NoError(h.t, h.Clean(ctx, ahead, nothing))
	}
}

// TestHousekeepingModel: whatever happens to a table, every snapshot that is left has exactly its rows in their order,
// every row knows where it came from, and in the end nothing is there that no snapshot needs.
func TestHousekeepingModel(t *testing.T) {
	t.Parallel()

	const steps = 150

	tables := 1
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		tables = 10
	}

	for n := range tables {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()

			const age = 3 * time.Hour

			h := newHistory(t)
			for i := range steps {
				h.step(age)

				if i%30 == 29 {
					h.check()
				}
			}

			oldest := func() int64 {
				for i, id := range h.order {
					if _, err := h.find(t.Context(), h.at, id); err == nil {
						return int64(i)
					}
				}

				return -1
			}

			before := h.clock.now().Add(-age)
			require.NoError(t, h.Expire(t.Context(), age))

			for i, id := range h.order[:max(len(h.order)-1, 0)] {
				require.Equal(t, h.times[h.order[i+1]].After(before), oldest() <= int64(i), "snapshot %d, %s", i, id)
			}

			h.clock.advance(time.Hour + time.Second)
			require.NoError(t, h.Clean(t.Context(), ahead, nothing))
			h.check()
			h.requireSound()
			require.ElementsMatch(t, h.needed(), h.keys())
			t.Logf("%d snapshots, %d are left, %d objects", len(h.order), int64(len(h.order))-oldest(), len(h.keys()))
		})
	}
}

// TestCompactAmongOthers: while some add rows, others make files one, and others expire and clean.
func TestCompactAmongOthers(t *testing.T) {
	t.Parallel()

	var (
		h          = newHistory(t)
		other, _   = h.replica(h.url, func(c *Config) { c.Grace = 2 * time.Second })
		group, ctx = errgroup.WithContext(t.Context())
		ended      atomic.Bool
		compacted  int
	)

	h.Lake = other
	h.add(Append)
	columns := h.mustState(h.at).current.Columns
	before := len(h.current())
	path := parquetFile(t, columns, 1000, 1)

	group.Go(func() error {
		defer ended.Store(true)

		for range 120 {
			ingestion, err := stageFrom(ctx, other, h.at, columns, path, Source{File: uuid.New(), Name: "1000", Skipped: []int64{2}, FirstRow: 1})
			if err != nil {
				return err
			}

			if _, err = other.Commit(ctx, Change{Table: h.at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore); err != nil {
				return err
			}
		}

		return nil
	})
	group.Go(func() error {
		for !ended.Load() {
			if err := other.Expire(ctx, 0); err != nil {
				return err
			}

			if err := other.Clean(ctx, ahead, nothing); err != nil {
				return err
			}
		}

		return nil
	})

	for !ended.Load() {
		change, ok := h.merge()
		if !ok {
			continue
		}

		if _, err := h.Commit(ctx, change, noMore); err == nil {
			compacted++
		} else {
			require.ErrorIs(t, err, ErrConflict)
			require.NoError(t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.DropTx(ctx, tx, h.at, change.Ingestions[0]) }))
		}
	}

	require.NoError(t, group.Wait())
	require.Positive(t, compacted)

	snapshot, files := h.place.current(h.at)
	require.Equal(t, int64(before+120), snapshot.Rows)

	rows := slices.Clone(h.current())
	for range 120 {
		rows = append(rows, 1000)
	}

	h.checkRows(files, rows)
	t.Logf("%d times, %d files are left", compacted, len(files))

	h.clock.advance(3 * time.Hour)
	require.NoError(t, h.Expire(t.Context(), 0))
	h.clock.advance(2 * time.Hour)
	require.NoError(t, h.Clean(t.Context(), ahead, nothing))
	h.requireSound()
	require.Len(t, h.keys(), len(files)+len(h.manifestsNow())+2, "data files, manifests, one list, and the metadata")
}

func (h *history) manifestsNow() []string {
	h.t.Helper()

	manifests, err := h.recallList(h.t.Context(), h.mustState(h.at).current.list)
	require.NoError(h.t, err)

	keys, err := h.manifestKeys(manifests)
	require.NoError(h.t, err)

	return keys
}
