package planner

import "quern.dev/quern/internal/lexicon"

// groups handles the words that follow per, by and each.
func (r *reader) groups() {
	for i := range r.items {
		if r.free(i) && r.items[i].kind == grainItem && !r.isOp(i-1, opGroup, opBy, opWhich) && r.adverb(i) {
			if g, ok := r.groupAt(i); ok {
				r.form.Groups = append(r.form.Groups, g)
			}
		}

		if !r.isOp(i, opGroup, opBy) {
			continue
		}

		if r.free(i+1) && r.items[i+1].kind == rowsItem && r.pick(i+1, text) < 0 {
			r.used[i], r.used[i+1] = true, true

			if r.find(opAverage) < 0 {
				r.doubt(0.6)
			}

			continue
		}

		if r.items[i].op == opBy && r.happened(i) && r.free(i+1) && r.items[i+1].kind == columnItem {
			r.used[i], r.used[i+1] = true, true // "nights booked by guests"
			r.doubt(0.95)

			continue
		}

		if r.items[i].op == opBy && r.free(i+1) && r.items[i+1].kind == columnItem && r.pick(i+1, text, truth, moment, year) < 0 && r.byMeasure(i+1) {
			r.used[i] = true

			continue
		}

		g, ok := r.groupAt(i + 1)
		if !ok {
			continue
		}

		r.used[i] = true
		r.form.Groups = append(r.form.Groups, g)

		for j := i + 2; r.isOp(j, opAnd, opBy, opGroup) && r.free(j+1); j += 2 {
			more, ok := r.groupAt(j + 1)
			if !ok {
				break
			}

			r.used[j] = true
			r.form.Groups = append(r.form.Groups, more)
		}
	}
}

// happened reports whether the "by" at i follows a verb in the past. The noun after it then names who acted, not a
// group.
func (r *reader) happened(i int) bool {
	before := r.items[i].from - 1
	if before < 0 || !lexicon.IsVerb(r.tokens[before].lower) {
		return false
	}

	return i == 0 || r.items[i-1].to <= before || r.items[i-1].kind != columnItem || r.items[i-1].score < 0.9 || r.pick(i-1, number) < 0
}

// adverb reports whether the item is an adverb such as "monthly", which groups without "per".
func (r *reader) adverb(i int) bool { return r.items[i].verb }

// byMeasure handles "by revenue", which orders the result.
func (r *reader) byMeasure(i int) bool {
	if r.find(opTop, opMost, opLeast, opOften) < 0 {
		return false
	}

	column := r.take(i, number)
	if column < 0 {
		return false
	}

	r.by = column

	return true
}

func (r *reader) groupAt(i int) (Group, bool) {
	if !r.free(i) {
		return Group{}, false
	}

	one := r.items[i]

	switch one.kind {
	case grainItem:
		if one.grain == Year {
			if list := r.ofKind(year); len(list) == 1 {
				r.used[i] = true

				return Group{Column: r.columns[list[0]].Name, isYear: true}, true
			}
		}

		column := r.namedTime(i, []kind{moment}, []kind{moment})
		if column < 0 {
			return Group{}, false
		}

		r.used[i] = true

		if one.grain == Day && r.columns[column].Type == "date" {
			one.grain = ""
		}

		return Group{Column: r.columns[column].Name, Grain: one.grain}, true
	case columnItem, rowsItem:
		if len(one.columns) == 0 {
			return Group{}, false
		}

		column := r.take(i, text, truth, year, moment, other)
		if column < 0 && r.columns[one.columns[0].column].isID {
			column = r.take(i, number)
		}

		if column < 0 {
			return Group{}, false
		}

		return Group{Column: r.columns[column].Name, isYear: r.columns[column].kind == year}, true
	default:
		return Group{}, false
	}
}

// orders handles "sorted by hours" and "in descending order".
func (r *reader) orders() {
	down := r.find(opDown)
	up := r.find(opUp)
	order := r.find(opOrder)

	if down < 0 && up < 0 && order < 0 {
		return
	}

	o := &Order{Descending: down >= 0}

	for _, i := range []int{down, up, order} {
		if i >= 0 {
			r.used[i] = true
		}
	}

	if order >= 0 {
		next := order + 1
		for r.isOp(next, opBy, opCount, opAverage, opSum) {
			r.used[next] = true
			next++
		}

		if r.free(next) && (r.items[next].kind == columnItem || r.items[next].kind == rowsItem) {
			if column := r.take(next, number, text, moment, year); column >= 0 {
				o.Column, o.written = r.columns[column].Name, r.columns[column].written
			} else {
				r.used[next] = true
			}
		}
	}

	r.form.Order = o
}
