package values

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// The parts of the file, in this order: blocks of keys; the names of the columns; the first key, size and checksum of
// each block; the filter; and a trailer of fixed size with the lengths of the other parts. Numbers in the trailer and
// in the filter are little endian, others are varints.
const (
	magic       = "qvalues1"
	blockKeys   = 32
	trailerSize = 7*8 + 4 + len(magic)

	maxWhole   = 16      // values of one key that are kept, the most frequent first
	maxPart    = 10      // a word that is in more values is not indexed
	partWords  = 8       // values with more words are free texts, and their words are not indexed
	maxFile    = 1 << 32 // bytes
	filterBits = 16      // bits for each key
)

var errDamaged = errors.New("the value index is damaged")

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// trailer is the end of the file.
type trailer struct {
	keys, blocks                uint64
	blockBytes, columns, firsts uint64 // bytes of each part
	filter                      uint64
	sum                         uint64 // checksum of columns, firsts and filter
}

func (t trailer) encode() []byte {
	var data []byte
	for _, number := range []uint64{t.keys, t.blocks, t.blockBytes, t.columns, t.firsts, t.filter, t.sum} {
		data = binary.LittleEndian.AppendUint64(data, number)
	}

	data = binary.LittleEndian.AppendUint32(data, checksum(data))

	return append(data, magic...)
}

// decodeTrailer decodes the trailer and checks that the parts have the given total size.
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

// hash returns the hash of a key in the filter.
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

// The filter also contains the first and last few letters of values. For values of several words it contains the first
// word, the last word, and the rest without each of them. A person who mistypes one letter writes the rest correctly,
// so typos are tried only if these parts exist.
const (
	firstWord    = "\x01"
	lastWord     = "\x02"
	firstLetters = "\x03"
	lastLetters  = "\x04"
	butFirst     = "\x05"
	butLast      = "\x06"
)

// The numbers of letters at both ends that the filter contains.
const (
	fewLetters  = 2
	mostLetters = 4
)

// marks returns the hashes of the ends of a key in the filter.
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

// cutLetters returns the position after the first letters of a text or, if letters is negative, the position before the
// last ones.
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

// filter is a Bloom filter in pieces of 512 bits, each in one cache line. A key has two bits in each of four words of
// its piece. Checking the first word is sufficient to reject most other keys.
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

// rest does the same as has for the other words.
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

// How a value is derived from its key. Most values need no text of their own.
const (
	asKey = iota
	asTitle
	asUpper
	asSentence
	asItself
)

// capital reports whether a letter of the key, which is in lower case, is a capital letter in the value.
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

// write returns the value that is derived from a key in this form.
func write(key string, form byte) string {
	value := []byte(key)
	for i := range value {
		if capital(key, form, i) {
			value[i] -= toCapital
		}
	}

	return string(value)
}

// formOf returns the form in which the value is derived from the key.
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
