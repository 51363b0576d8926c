package values

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// Entry is a distinct value of a column with the number of rows that have it.
type Entry struct {
	Column string
	Value  string
	Count  int64
}

// Bounds contains the limits of an index. Entries beyond them are left out, so the most important entries must come
// first.
type Bounds struct {
	Column int // values of one column
	Table  int // values of all columns
	Bytes  int // bytes of all values
	Length int // characters of a value
}

// DefaultBounds returns the bounds for a table. With them, Build needs at most about 700 MB of memory.
func DefaultBounds() Bounds {
	return Bounds{Column: 1_000_000, Table: 2_000_000, Bytes: 64 << 20, Length: 100}
}

// Stats reports how many entries were indexed.
type Stats struct {
	Columns []ColumnStats
	Keys    int   // folded values, and words of values
	Bytes   int64 // size of the file
}

// ColumnStats reports how many entries of one column were indexed.
type ColumnStats struct {
	Name    string
	Values  int  // values in the index
	Long    int  // values left out because of their length
	Sampled bool // other values were left out
}

// row is an entry with its key.
type row struct {
	key, value string
	column     int
	count      int64
}

// part is a word of a key.
type part struct {
	word string
	key  uint32 // index of the key
}

type builder struct {
	bounds  Bounds
	stats   Stats
	columns map[string]int
	rows    []row
	bytes   int
}

// Build writes the index of a table's entries. sampled reports whether the caller has already left out values of a
// column; it is called after the last entry and may be nil.
func Build(to io.Writer, entries iter.Seq[Entry], bounds Bounds, sampled func(column string) bool) (Stats, error) {
	b := builder{bounds: bounds, columns: map[string]int{}}
	for entry := range entries {
		b.add(entry)
	}

	for i := range b.stats.Columns {
		c := &b.stats.Columns[i]
		c.Sampled = c.Sampled || sampled != nil && sampled(c.Name)
	}

	slices.SortFunc(b.rows, func(x, y row) int {
		return cmp.Or(strings.Compare(x.key, y.key), cmp.Compare(y.count, x.count), cmp.Compare(x.column, y.column), strings.Compare(x.value, y.value))
	})

	err := b.write(to)

	return b.stats, err
}

func (b *builder) add(entry Entry) {
	at, met := b.columns[entry.Column]
	if !met {
		at = len(b.columns)
		b.columns[entry.Column] = at
		b.stats.Columns = append(b.stats.Columns, ColumnStats{Name: entry.Column})
	}

	column := &b.stats.Columns[at]

	if len(entry.Value) > b.bounds.Length && utf8.RuneCountInString(entry.Value) > b.bounds.Length {
		column.Long++

		return
	}

	key := lexicon.Key(entry.Value)
	if key == "" {
		return // the value consists only of signs
	}

	if column.Values >= b.bounds.Column || len(b.rows) >= b.bounds.Table || b.bytes+len(entry.Value) > b.bounds.Bytes {
		column.Sampled = true

		return
	}

	column.Values++
	b.bytes += len(entry.Value)
	b.rows = append(b.rows, row{key: key, value: entry.Value, column: at, count: max(entry.Count, 0)})
}

// wholes returns the rows of each key, in the order of the keys.
func (b *builder) wholes() [][]row {
	var wholes [][]row

	for i := 0; i < len(b.rows); {
		end := i + 1
		for end < len(b.rows) && b.rows[end].key == b.rows[i].key {
			end++
		}

		wholes = append(wholes, b.rows[i:min(end, i+maxWhole)])
		i = end
	}

	return wholes
}

// parts returns the words that are in at most maxPart keys of several words, in the order of the words.
func parts(wholes [][]row) []part {
	var all []part

	for i, rows := range wholes {
		key := rows[0].key
		if spaces := strings.Count(key, " "); spaces == 0 || spaces >= partWords {
			continue
		}

		for w := range strings.SplitSeq(key, " ") {
			if len(w) >= partLetters && !lexicon.IsStop(w) {
				all = append(all, part{w, uint32(i)}) //nolint:gosec // as many as Bounds allow
			}
		}
	}

	slices.SortFunc(all, func(x, y part) int { return cmp.Or(strings.Compare(x.word, y.word), cmp.Compare(x.key, y.key)) })
	all = slices.Compact(all)

	kept := all[:0]

	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].word == all[i].word {
			end++
		}

		if end-i <= maxPart {
			kept = append(kept, all[i:end]...)
		}

		i = end
	}

	return kept
}

// item is a key with its content.
type item struct {
	key   string
	whole int // index in wholes; -1 if the key is only a word
	parts []part
}

// items merges keys and words in order.
func items(wholes [][]row, parts []part) iter.Seq[item] {
	return func(yield func(item) bool) {
		for w, p := 0, 0; w < len(wholes) || p < len(parts); {
			one := item{whole: -1}

			if p == len(parts) || w < len(wholes) && wholes[w][0].key <= parts[p].word {
				one.key, one.whole = wholes[w][0].key, w
				w++
			} else {
				one.key = parts[p].word
			}

			from := p
			for p < len(parts) && parts[p].word == one.key {
				p++
			}

			one.parts = parts[from:p]

			if !yield(one) {
				return
			}
		}
	}
}

func (b *builder) write(to io.Writer) error {
	var (
		wholes   = b.wholes()
		parts    = parts(wholes)
		ordinals = make([]uint32, len(wholes)) // final number of each key
		ends     = map[uint64]struct{}{}       // hashes of the ends of values
		keys     int
	)

	for one := range items(wholes, parts) {
		if one.whole >= 0 {
			ordinals[one.whole] = uint32(keys) //nolint:gosec // as many as Bounds allow
		}

		if one.whole >= 0 {
			for _, mark := range marks(one.key) {
				ends[mark] = struct{}{}
			}
		}

		keys++
	}

	w := writer{out: bufio.NewWriterSize(to, 1<<18), filter: newFilter(keys + len(ends))}
	for mark := range ends {
		w.filter.add(mark)
	}

	var room []byte

	for one := range items(wholes, parts) {
		room = payload(room[:0], one, wholes, ordinals)
		w.add(one.key, room)
	}

	bytes, err := w.finish(b.stats.Columns)
	b.stats.Keys, b.stats.Bytes = keys, bytes

	return err
}

// payload appends the content of a key: its values, and the keys that contain it as a word.
func payload(data []byte, one item, wholes [][]row, ordinals []uint32) []byte {
	var rows []row

	if one.whole >= 0 {
		rows = wholes[one.whole]
	}

	data = binary.AppendUvarint(data, uint64(len(rows)))

	for _, r := range rows {
		form := formOf(r.key, r.value)
		data = binary.AppendUvarint(data, uint64(r.column)) //nolint:gosec // not negative
		data = binary.AppendUvarint(data, uint64(r.count))  //nolint:gosec // not negative

		if data = append(data, form); form == asItself {
			data = appendText(data, r.value)
		}
	}

	for _, p := range one.parts {
		data = binary.AppendUvarint(data, uint64(ordinals[p.key]))
	}

	return data
}

func appendText(data []byte, text string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(text))), text...)
}

func flag(set bool) byte {
	if set {
		return 1
	}

	return 0
}

// writer writes the blocks of the file.
type writer struct {
	out    *bufio.Writer
	filter filter

	trailer trailer
	firsts  []byte
	block   []byte
	last    string // the last key
}

func (w *writer) add(key string, payload []byte) {
	shared := 0

	if w.trailer.keys%blockKeys == 0 {
		w.flush()
		w.firsts = appendText(w.firsts, separator(w.last, key))
	} else {
		for shared < min(len(key), len(w.last)) && key[shared] == w.last[shared] {
			shared++
		}
	}

	w.block = binary.AppendUvarint(w.block, uint64(shared))
	w.block = appendText(w.block, key[shared:])
	w.block = append(binary.AppendUvarint(w.block, uint64(len(payload))), payload...)

	w.filter.add(hash(key))

	w.last = key
	w.trailer.keys++
}

// separator returns the shortest prefix of key that is greater than before.
func separator(before, key string) string {
	same := 0
	for same < min(len(before), len(key)) && before[same] == key[same] {
		same++
	}

	return key[:min(same+1, len(key))]
}

func (w *writer) flush() {
	if len(w.block) == 0 {
		return
	}

	_, _ = w.out.Write(w.block) // Flush returns the error
	w.firsts = binary.AppendUvarint(w.firsts, uint64(len(w.block)))
	w.firsts = binary.LittleEndian.AppendUint32(w.firsts, checksum(w.block))
	w.trailer.blockBytes += uint64(len(w.block))
	w.trailer.blocks++
	w.block = w.block[:0]
}

func (w *writer) finish(stats []ColumnStats) (int64, error) {
	w.flush()

	var rest []byte
	for _, column := range stats {
		rest = append(appendText(rest, column.Name), flag(column.Sampled))
	}

	w.trailer.columns, w.trailer.firsts, w.trailer.filter = uint64(len(rest)), uint64(len(w.firsts)), uint64(64*len(w.filter))
	rest = append(rest, w.firsts...)

	for _, piece := range w.filter {
		for _, bits := range piece {
			rest = binary.LittleEndian.AppendUint64(rest, bits)
		}
	}

	w.trailer.sum = uint64(checksum(rest))
	rest = append(rest, w.trailer.encode()...)

	_, _ = w.out.Write(rest)

	size := w.trailer.blockBytes + uint64(len(rest))
	if size > maxFile {
		return 0, errors.New("the value index is too large")
	}

	return int64(size), w.out.Flush()
}
