package values

import (
	"encoding/binary"
	"io"
	"os"
	"sort"
	"strings"
	"unicode/utf8"
)

// Index is an open index file. It is safe for concurrent use. The caller of Open closes it after its last use.
type Index struct {
	file    io.ReaderAt
	close   func() error
	keys    uint64
	columns []string
	sampled []string
	filter  filter

	firsts string // the first keys of the blocks, concatenated
	blocks []block
}

// block is the position of a block in the file, and of its first key in firsts.
type block struct {
	at         int64
	size       uint32
	sum        uint32
	first, end uint32
}

// Open opens an index file. It fails if the file is damaged.
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

// Sampled returns the columns of which the index does not contain all values.
func (x *Index) Sampled() []string { return x.sampled }

// Memory returns the approximate number of bytes of memory of an open index.
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

// readFirsts reads the list of blocks. It reports false if the list is damaged.
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

// entry is the content of a key: its values, and the keys that contain it as a word.
type entry struct {
	key    string
	values []value
	partOf []uint64 // numbers of keys
}

// look finds a key.
func (x *Index) look(s *scratch, key string) (entry, bool) {
	at := sort.Search(len(x.blocks), func(i int) bool { return x.firsts[x.blocks[i].first:x.blocks[i].end] > key }) - 1
	if at < 0 {
		return entry{}, false
	}

	return x.scan(s, at, func(_ int, other []byte) bool { return string(other) == key })
}

// numbered finds a key by its number.
func (x *Index) numbered(s *scratch, number uint64) (entry, bool) {
	if number >= x.keys {
		return entry{}, false
	}

	return x.scan(s, int(number/blockKeys), func(i int, _ []byte) bool { return uint64(i) == number%blockKeys }) //nolint:gosec // not negative
}

// scratch is reusable memory for reading blocks.
type scratch struct{ block, key []byte }

func (s *scratch) room(size int) []byte {
	if cap(s.block) < size {
		s.block = make([]byte, 2*size)
	}

	return s.block[:size]
}

// scan reads the keys of a block until meant returns true.
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

// entry decodes the content of a key.
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

// reader reads numbers and texts from untrusted bytes. After the first error, bad is true and data is empty.
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
