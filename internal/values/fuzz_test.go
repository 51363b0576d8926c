package values

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

func sample(tb testing.TB, count int) []byte {
	tb.Helper()

	var file bytes.Buffer

	_, err := Build(&file, made(count, 3), DefaultBounds(), nil)
	require.NoError(tb, err)

	return file.Bytes()
}

// resealed returns a changed file with correct checksums, so that the code behind the checksums is tested too.
func resealed(file []byte) []byte {
	file = bytes.Clone(file)
	if len(file) < trailerSize {
		return file
	}

	end := file[len(file)-trailerSize:]
	numbers := trailerSize - 4 - len(magic)
	blocks, rest := binary.LittleEndian.Uint64(end[16:]), len(file)-trailerSize

	if blocks <= uint64(rest) {
		binary.LittleEndian.PutUint64(end[numbers-8:], uint64(checksum(file[blocks:rest])))
	}

	binary.LittleEndian.PutUint32(end[numbers:], checksum(end[:numbers]))
	copy(end[numbers+4:], magic)

	return file
}

// read uses a file in every possible way.
func read(file []byte) {
	x, err := open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return
	}

	for i := range x.blocks { // as if the checksum were correct
		if at := x.blocks[i].at; at+int64(x.blocks[i].size) <= int64(len(file)) {
			x.blocks[i].sum = checksum(file[at : at+int64(x.blocks[i].size)])
		}
	}

	x.Match(Ask("where is Kuran Grosta, of Sta in the north of Prainen"))

	var s scratch
	for number := range min(x.keys, 1000) {
		if found, ok := x.numbered(&s, number); ok {
			x.look(&s, found.key)
		}
	}

	x.numbered(&s, x.keys)
}

// TestDamaged checks that no change of a file causes a panic, and that a file with wrong checksums is not read.
func TestDamaged(t *testing.T) {
	t.Parallel()

	whole := sample(t, 200)

	for size := range whole {
		_, err := open(bytes.NewReader(whole[:size]), int64(size))
		require.Error(t, err, size)
	}

	dice := rand.New(rand.NewPCG(1, 2))
	blocks := int(binary.LittleEndian.Uint64(whole[len(whole)-trailerSize+16:]))

	for range 500 {
		changed, at := bytes.Clone(whole), dice.IntN(len(whole))
		changed[at] ^= byte(1 + dice.IntN(255))

		x, err := open(bytes.NewReader(changed), int64(len(changed)))
		require.Equal(t, at < blocks, err == nil, "a change at %d", at)

		if err == nil {
			x.Match(Ask("where is Kuran Grosta"))
		}

		read(resealed(changed))
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add(sample(f, 1))
	f.Add(sample(f, 100))

	f.Fuzz(func(_ *testing.T, file []byte) {
		read(file)
		read(resealed(file))
	})
}

func FuzzAsk(f *testing.F) {
	f.Add("sales in Zürich, New York", "New York")
	f.Add("\u6771\u4eac\u306e\u4eba\u53e3\u306f", "\u6771\u4eac")

	f.Fuzz(func(t *testing.T, question, value string) {
		folded := lexicon.Key(value)
		require.Equal(t, folded, lexicon.Key(folded))

		for _, m := range index(t, value, "paris").Match(Ask(question)) {
			require.True(t, m.Start >= 0 && m.Start < m.End && m.End <= len(question))
			require.True(t, utf8.ValidString(m.Value))
		}
	})
}
