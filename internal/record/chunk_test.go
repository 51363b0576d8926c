package record_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/record"
)

// TestSplit checks that every line is in a chunk, that chunks are small, and that what is as long as the overlap is whole in one chunk.
func TestSplit(t *testing.T) {
	t.Parallel()

	const bound, overlap = 400, 120

	random := rand.New(rand.NewPCG(1, 2))

	for range 200 {
		var pages []string

		for range 1 + random.IntN(6) {
			var page strings.Builder

			for range random.IntN(40) {
				page.WriteString(strings.Repeat("ö", random.IntN(25)) + strconv.Itoa(random.IntN(1<<30)) + "\n")
			}

			pages = append(pages, strings.TrimSuffix(page.String(), "\n"))
		}

		covered := make([]map[int]bool, len(pages))
		for n := range covered {
			covered[n] = map[int]bool{}
		}

		for _, c := range record.Split(pages, bound, overlap) {
			require.LessOrEqual(t, c.Size(), bound)

			for _, p := range c.Parts {
				text := string([]rune(pages[p.Page-1])[p.From : p.From+utf8.RuneCountInString(p.Text)])
				require.Equal(t, text, p.Text)

				for at := range utf8.RuneCountInString(p.Text) {
					covered[p.Page-1][p.From+at] = true
				}
			}
		}

		for n, page := range pages {
			require.Len(t, covered[n], utf8.RuneCountInString(page))
		}
	}

	long := strings.Repeat("ä", 1000)
	chunks := record.Split([]string{long}, bound, overlap)
	require.Len(t, chunks, 5)
	require.Empty(t, record.Split([]string{"", " \n\n"}, bound, overlap))

	halves := record.Split([]string{strings.Repeat("a line\n", 50)}, bound, overlap)[0].Halves(overlap)
	require.Len(t, halves, 2)
	require.Nil(t, chunks[0].Halves(overlap), "one line")
}

// TestJoin reads a document in overlapping chunks: the records that stand in two of them are there once, also if one chunk has only a part.
func TestJoin(t *testing.T) {
	t.Parallel()

	for name, write := range layouts() {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, keyed), func(t *testing.T) {
				t.Parallel()

				var (
					written strings.Builder
					quotes  [][4]string
				)

				for n := range 60 {
					piece, q := write(n)
					written.WriteString(piece)

					quotes = append(quotes, q)
				}

				text, fields := written.String(), goods()
				fields[0].InKey = keyed

				var answers []record.Answered

				middle := strings.LastIndexByte(text[:len(text)/2], '\n') + 1

				for _, c := range record.Split([]string{text[:middle], text[middle:]}, 700, 200) {
					answers = append(answers, record.Answered{Chunk: c, Answer: reads(t, c, quotes, keyed)})
				}

				require.GreaterOrEqual(t, len(answers), 4)

				found, err := record.Assemble(fields, record.Style{}, answers)
				require.NoError(t, err)

				again, err := record.Assemble(fields, record.Style{}, answers)
				require.NoError(t, err)
				require.Equal(t, found, again)

				seen := map[string]int{}
				for _, r := range found.Records {
					seen[r.Cells[0].Value]++
				}

				// A page ends in the middle of a record, so one record may lack some of its fields.
				for n := range 60 {
					require.LessOrEqual(t, seen[want(n)[0]], 1, "record %d", n)
				}

				require.GreaterOrEqual(t, len(seen), 59)
			})
		}
	}
}

// reads is the answer of a model that makes no mistakes and reads records also in part.
func reads(t *testing.T, c record.Chunk, quotes [][4]string, isWhole bool) string {
	t.Helper()

	var claims []said

	for n, q := range quotes {
		one := said{}

		for i, field := range names() {
			for _, p := range c.Parts {
				if at := strings.Index(p.Text, q[i]); at >= 0 && (at+len(q[i]) == len(p.Text) || p.Text[at+len(q[i])] == '\n' || p.Text[at+len(q[i])] == '\t') {
					one[field] = &says{values(n)[i], q[i], p.Page}

					break
				}
			}
		}

		if one["item"] != nil || (!isWhole && one["price"] != nil) {
			claims = append(claims, one)
		}
	}

	return answer(t, claims...)
}
