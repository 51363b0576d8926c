package record_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/record"
)

// layout writes a record, with the quotes of its fields.
type layout func(n int) (text string, quotes [4]string)

func layouts() map[string]layout {
	return map[string]layout{
		"lines, cells quoted": func(n int) (string, [4]string) {
			v := values(n)

			return strings.Join(v[:], "\t") + "\n", v
		},
		"lines, lines quoted": func(n int) (string, [4]string) {
			v := values(n)
			text := strings.Join(v[:], "\t")

			return text + "\n", [4]string{text, text, text, text}
		},
		"sections": func(n int) (string, [4]string) {
			v := values(n)
			quotes := [4]string{"Item: " + v[0], "Quantity: " + v[1], "Price: " + v[2], "Delivered on " + v[3]}

			return strings.Join(quotes[:], "\n") + "\n\n", quotes
		},
	}
}

func values(n int) [4]string {
	return [4]string{fmt.Sprintf("Item %d", n), strconv.Itoa(3 + 2*n), fmt.Sprintf("%d,%02d EUR", 1010+n, n), fmt.Sprintf("%02d.%02d.2026", 1+n%28, 1+n%12)}
}

func names() [4]string { return [4]string{"item", "quantity", "price", "day"} }

func want(n int) [4]string {
	price := strings.TrimSuffix(fmt.Sprintf("%d.%02d", 1010+n, n), "0")

	return [4]string{fmt.Sprintf("Item %d", n), strconv.Itoa(3 + 2*n), strings.TrimSuffix(strings.TrimSuffix(price, "0"), "."), fmt.Sprintf("2026-%02d-%02d", 1+n%12, 1+n%28)}
}

// plant makes a mistake in a claim about the field i of the record n. It returns the flag that the mistake must get.
func plant(kind, i, n int, quotes [][4]string, c *says) record.Flag {
	other := (n + 3) % len(quotes)

	switch kind {
	case 0: // another value than the quote has
		c.Value = "999"

		return record.ValueNotInQuote
	case 1: // the value and the quote of another record
		c.Value, c.Quote = values(other)[i], quotes[other][i]

		return record.OtherRecord
	case 2: // invented with its quote
		c.Value, c.Quote = "Item 4711", "the Item 4711"

		return record.QuoteNotFound
	case 3:
		c.Page++

		return record.WrongPage
	default:
		c.Value = strings.Replace(values(n)[2], "EUR", "USD", 1)

		return record.WrongUnit
	}
}

// TestPlantedMistakes makes known mistakes in the claims about documents of three layouts. All are flagged, and no right field is.
func TestPlantedMistakes(t *testing.T) {
	t.Parallel()

	for name, write := range layouts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var planted, flagged, lost, right int

			for seed := range uint64(40) {
				random := rand.New(rand.NewPCG(seed, 1))

				var (
					text   strings.Builder
					quotes [][4]string
					claims []said
					wanted = map[[2]int]record.Flag{}
				)

				text.WriteString("Price list for dealers\n\n")

				for n := range 10 {
					piece, q := write(n)
					text.WriteString(piece)
					quotes = append(quotes, q)
				}

				for n := range quotes {
					one := said{}

					for i, field := range names() {
						c := &says{values(n)[i], quotes[n][i], 1}
						one[field] = c

						if kind := random.IntN(5); random.IntN(12) == 0 && (kind != 4 || i == 2) {
							wanted[[2]int{n, i}] = plant(kind, i, n, quotes, c)
						}
					}

					claims = append(claims, one)
				}

				found := assemble(t, goods(), record.Style{}, whole(text.String(), "The end.\n"), claims...)

				require.Len(t, found.Records, len(quotes))

				for _, r := range found.Records {
					n := recordOf(r, len(quotes))

					for i, c := range r.Cells {
						switch flag := wanted[[2]int{n, i}]; {
						case flag != "":
							planted++

							if c.Flag == flag {
								flagged++
							} else {
								t.Logf("seed %d, record %d, %s: %q instead of %q", seed, n, names()[i], c.Flag, flag)
							}
						default:
							right++

							if c.Flag != "" || c.Value != want(n)[i] {
								lost++

								t.Logf("seed %d, record %d, %s: lost by %q: %q", seed, n, names()[i], c.Flag, c.Value)
							}
						}
					}
				}
			}

			t.Logf("%d of %d planted mistakes flagged, %d of %d right fields lost", flagged, planted, lost, right)
			require.Greater(t, planted, 80)
			require.Equal(t, planted, flagged)
			require.Zero(t, lost)
		})
	}
}

// recordOf returns which record one is, by most of its fields: those with a mistake are different.
func recordOf(r record.Record, count int) (best int) {
	most := 0

	for n := range count {
		same := 0

		for i, c := range r.Cells {
			if c.Value == want(n)[i] || c.Said == values(n)[i] {
				same++
			}
		}

		if same > most {
			best, most = n, same
		}
	}

	return best
}
