package values

import (
	"encoding/binary"
	"io"
	"os"
	"sort"
	"strings"
	"unicode/utf8"
)

// Index is an open index file. It is safe for use by several goroutines; whoever opened it closes it when nobody
// uses it any more.
type Index struct {
	file    io.ReaderAt
	close   func() error
	keys    uint64
	columns []string
	sampled []string
	filter  filter

	firsts string // the first keys of the blocks, one after another
	blocks []block
}

// block is where a block lies, and where its first key lies in firsts.
type block struct {
	at         int64
	size       uint32
	sum        uint32
	first, end uint32
}

// Open opens an index file. A damaged one is an error.
func Open(path string) (*Index, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}

	info, err := file.Stat()
	if err != nil {
		_ = file.Close()

		return nil, err
	}

	index, err := open(file, info.Size())
	if err != nil {
		_ = file.Close()

		return nil, err
	}

	index.close = file.Close

	return index, nil
}

// Close closes the file.
func (x *Index) Close() error { return x.close() }

// Sampled are the columns that have more values than the index.
func (x *Index) Sampled() []string { return x.sampled }

// Memory is about how many bytes an open index takes.
func (x *Index) Memory() int64 {
	return int64(64*len(x.filter) + len(x.firsts) + 24*len(x.blocks) + 1000)
}

func open(file io.ReaderAt, size int64) (*Index, error) {
	if size < int64(trailerSize) || size > maxFile {
		return nil, errDamaged
	}

	end := make([]byte, trailerSize)
	if _, err := file.ReadAt(end, size-int64(trailerSize)); err != nil {
		return nil, err
	}

	t, err := decodeTrailer(end, size)
	if err != nil {
		return nil, err
	}

	rest := make([]byte, t.columns+t.firsts+t.filter)
	if _, err := file.ReadAt(rest, int64(t.blockBytes)); err != nil { //nolint:gosec // not larger than the file
		return nil, err
	}

	if uint64(checksum(rest)) != t.sum {
		return nil, errDamaged
	}

	x := &Index{file: file, close: func() error { return nil }, keys: t.keys}

	columns := reader{data: rest[:t.columns]}
	for len(columns.data) > 0 && !columns.bad {
		name := string(columns.text())
		x.columns = append(x.columns, name)

		if columns.byte() == 1 {
			x.sampled = append(x.sampled, name)
		}
	}

	x.filter = make(filter, t.filter/64)
	for i, words := 0, rest[t.columns+t.firsts:]; len(words) > 0; i, words = i+1, words[8:] {
		x.filter[i/8][i%8] = binary.LittleEndian.Uint64(words)
	}

	if columns.bad || !x.readFirsts(reader{data: rest[t.columns : t.columns+t.firsts]}, t) {
		return nil, errDamaged
	}

	return x, nil
}

// readFirsts makes the list of blocks.
func (x *Index) readFirsts(list reader, t trailer) bool {
	var (
		firsts strings.Builder
		at     uint64
	)

	for range t.blocks {
		first := firsts.Len()
		firsts.Write(list.text())

		size := list.number()
		one := block{at: int64(at), size: uint32(size), sum: list.fixed(), first: uint32(first), end: uint32(firsts.Len())} //nolint:gosec // checked below

		if at += size; list.bad || size > t.blockBytes || at > t.blockBytes {
			return false
		}

		x.blocks = append(x.blocks, one)
	}

	x.firsts = firsts.String()

	return at == t.blockBytes && len(list.data) == 0
}

// value is a value of the index.
type value struct {
	column int
	text   string
	count  int64
}

// entry is what a key leads to.
type entry struct {
	key    string
	values []value
	partOf []uint64 // keys by their number
}

// look finds a key.
func (x *Index) look(s *scratch, key string) (entry, bool) {
	at := sort.Search(len(x.blocks), func(i int) bool { return x.firsts[x.blocks[i].first:x.blocks[i].end] > key }) - 1
	if at < 0 {
		return entry{}, false
	}

	return x.scan(s, at, func(_ int, other []byte) bool { return string(other) == key })
}

// numbered is a key by its number.
func (x *Index) numbered(s *scratch, number uint64) (entry, bool) {
	if number >= x.keys {
		return entry{}, false
	}

	return x.scan(s, int(number/blockKeys), func(i int, _ []byte) bool { return uint64(i) == number%blockKeys }) //nolint:gosec // not negative
}

// scratch is memory for reading blocks, used again and again.
type scratch struct{ block, key []byte }

func (s *scratch) room(size int) []byte {
	if cap(s.block) < size {
		s.block = make([]byte, 2*size)
	}

	return s.block[:size]
}

// scan reads the keys of a block up to the one that is meant.
func (x *Index) scan(s *scratch, at int, meant func(i int, key []byte) bool) (entry, bool) {
	data := s.room(int(x.blocks[at].size))
	if _, err := x.file.ReadAt(data, x.blocks[at].at); err != nil || checksum(data) != x.blocks[at].sum {
		return entry{}, false
	}

	list, key := reader{data: data}, s.key[:0]

	for i := 0; len(list.data) > 0; i++ {
		shared := list.number()
		rest := list.text()
		payload := list.text()

		if list.bad || shared > uint64(len(key)) {
			return entry{}, false
		}

		key = append(key[:shared], rest...)
		s.key = key

		if meant(i, key) {
			return x.entry(string(key), reader{data: payload})
		}
	}

	return entry{}, false
}

// entry reads what a key leads to.
func (x *Index) entry(key string, list reader) (entry, bool) {
	found := entry{key: key}

	for range min(list.number(), maxWhole) {
		one := value{column: int(list.number()), count: int64(list.number())} //nolint:gosec // checked below

		form := list.byte()
		if form == asItself {
			one.text = string(list.text())
		} else {
			one.text = write(key, form)
		}

		if list.bad || one.column < 0 || one.column >= len(x.columns) || one.count < 0 || !utf8.ValidString(one.text) {
			return entry{}, false
		}

		found.values = append(found.values, one)
	}

	for len(list.data) > 0 && len(found.partOf) < maxPart {
		found.partOf = append(found.partOf, list.number())
	}

	return found, !list.bad
}

// reader takes numbers and texts from bytes that may be anything. Once something was wrong it is bad and empty.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(size uint64) []byte {
	if size > uint64(len(r.data)) {
		r.data, r.bad = nil, true

		return nil
	}

	taken := r.data[:size]
	r.data = r.data[size:]

	return taken
}

func (r *reader) number() uint64 {
	number, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.data, r.bad = nil, true

		return 0
	}

	r.data = r.data[size:]

	return number
}

func (r *reader) text() []byte { return r.take(r.number()) }

func (r *reader) byte() byte {
	if one := r.take(1); len(one) == 1 {
		return one[0]
	}

	return asItself
}

func (r *reader) fixed() uint32 {
	if four := r.take(4); len(four) == 4 {
		return binary.LittleEndian.Uint32(four)
	}

	return 0
}
