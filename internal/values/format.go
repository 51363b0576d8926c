package values

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// The file, in this order: blocks of keys; the names of the columns; the first key, size and checksum of each block;
// the filter; and a trailer of fixed size that says how long they are. Numbers in the trailer and in the filter are
// little endian, others are varints.
const (
	magic       = "qvalues1"
	blockKeys   = 32
	trailerSize = 7*8 + 4 + len(magic)

	maxWhole   = 16      // values of one key that are kept, the most frequent
	maxPart    = 10      // values that a word may stand in to be worth a hit
	partWords  = 8       // values of more words are texts, and their words say little
	maxFile    = 1 << 32 // bytes
	filterBits = 16      // for each key
)

var errDamaged = errors.New("the value index is damaged")

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// trailer is the end of the file.
type trailer struct {
	keys, blocks                uint64
	blockBytes, columns, firsts uint64 // bytes of each part
	filter                      uint64
	sum                         uint64 // of columns, firsts and filter
}

func (t trailer) encode() []byte {
	var data []byte
	for _, number := range []uint64{t.keys, t.blocks, t.blockBytes, t.columns, t.firsts, t.filter, t.sum} {
		data = binary.LittleEndian.AppendUint64(data, number)
	}

	data = binary.LittleEndian.AppendUint32(data, checksum(data))

	return append(data, magic...)
}

// decodeTrailer checks that the parts make up a file of this size.
func decodeTrailer(data []byte, size int64) (t trailer, err error) {
	numbers := len(data) - 4 - len(magic)
	if string(data[numbers+4:]) != magic || binary.LittleEndian.Uint32(data[numbers:]) != checksum(data[:numbers]) {
		return t, errDamaged
	}

	for i, number := range []*uint64{&t.keys, &t.blocks, &t.blockBytes, &t.columns, &t.firsts, &t.filter, &t.sum} {
		if *number = binary.LittleEndian.Uint64(data[8*i:]); *number > maxFile {
			return t, errDamaged
		}
	}

	if t.blockBytes+t.columns+t.firsts+t.filter+uint64(trailerSize) != uint64(size) || //nolint:gosec // not negative
		t.blocks != (t.keys+blockKeys-1)/blockKeys || t.filter%64 != 0 || t.filter == 0 {
		return t, errDamaged
	}

	return t, nil
}

// hash is that of a key in the filter.
func hash(key string) uint64 { return mix(hashed(hashSeed, key)) }

const hashSeed = 14695981039346656037

func hashed(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}

	return h
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53

	return h ^ h>>33
}

// The filter also knows with which few letters values begin and end, with which words those of several words do, and
// what they are without one of these: whoever mistypes a letter has the rest right.
const (
	firstWord    = "\x01"
	lastWord     = "\x02"
	firstLetters = "\x03"
	lastLetters  = "\x04"
	butFirst     = "\x05"
	butLast      = "\x06"
)

// The letters at both ends that the filter knows of.
const (
	fewLetters  = 2
	mostLetters = 4
)

// marks are the hashes under which the filter knows the ends of a key.
func marks(key string) (hashes []uint64) {
	for letters := fewLetters; letters <= mostLetters; letters++ {
		first, ok := cutLetters(key, letters)
		last, alsoOk := cutLetters(key, -letters)

		if ok && alsoOk {
			hashes = append(hashes, hash(key[:first]+firstLetters), hash(key[last:]+lastLetters))
		}
	}

	if first, rest, several := strings.Cut(key, " "); several {
		last := strings.LastIndexByte(key, ' ')
		hashes = append(hashes, hash(first+firstWord), hash(key[last+1:]+lastWord), hash(rest+butFirst), hash(key[:last]+butLast))
	}

	return hashes
}

// cutLetters is where the first letters of a text end, or with a negative number where the last ones begin.
func cutLetters(text string, letters int) (at int, ok bool) {
	if letters < 0 {
		for at = len(text); letters < 0 && at > 0; letters++ {
			_, size := utf8.DecodeLastRuneInString(text[:at])
			at -= size
		}

		return at, letters == 0
	}

	for ; letters > 0 && at < len(text); letters-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}

	return at, letters == 0
}

// filter is a Bloom filter in pieces of 512 bits, each in one line of the processor's cache. A key has two bits in
// each of four words of its piece: the first word alone tells most others from it.
type filter [][8]uint64

func newFilter(keys int) filter { return make(filter, max(1, (keys*filterBits+511)/512)) }

func (f filter) piece(h uint64) *[8]uint64 {
	at, _ := bits.Mul64(h, uint64(len(f)))

	return &f[at]
}

func (f filter) add(h uint64) {
	piece := f.piece(h)

	for i := uint64(0); i < 8; i += 2 {
		piece[i|h&1] |= 1<<(h>>1&63) | 1<<(h>>7&63)
		h >>= 13
	}
}

func (f filter) has(h uint64) bool {
	piece := f.piece(h)
	bits := uint64(1)<<(h>>1&63) | 1<<(h>>7&63)

	return piece[h&1]&bits == bits && rest(piece, h>>13)
}

// rest is has for the other words.
func rest(piece *[8]uint64, h uint64) bool {
	for i := uint64(2); i < 8; i += 2 {
		bits := uint64(1)<<(h>>1&63) | 1<<(h>>7&63)
		if piece[i|h&1]&bits != bits {
			return false
		}

		h >>= 13
	}

	return true
}

// How a value is written, seen from its key: most need no more than that.
const (
	asKey = iota
	asTitle
	asUpper
	asSentence
	asItself
)

// capital is true where a letter of the key is a large one in the value.
func capital(key string, form byte, at int) bool {
	if key[at] < 'a' || key[at] > 'z' {
		return false
	}

	switch form {
	case asTitle:
		return at == 0 || key[at-1] == ' '
	case asUpper:
		return true
	case asSentence:
		return at == 0
	default:
		return false
	}
}

const toCapital = 'a' - 'A'

// write gives the value of a key that is written in this way.
func write(key string, form byte) string {
	value := []byte(key)
	for i := range value {
		if capital(key, form, i) {
			value[i] -= toCapital
		}
	}

	return string(value)
}

// formOf is how a value is written.
func formOf(key, value string) byte {
	if len(key) != len(value) {
		return asItself
	}

	for form := range byte(asItself) {
		same := true

		for i := 0; i < len(key) && same; i++ {
			want := key[i]
			if capital(key, form, i) {
				want -= toCapital
			}

			same = value[i] == want
		}

		if same {
			return form
		}
	}

	return asItself
}
