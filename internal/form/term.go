package form

import "quern.dev/quern/internal/meaning"

// value is a term as SQL, with what its figures mean.
type value struct {
	sql   string
	role  meaning.Role // empty for a number
	unit  string
	cells []cell
}

// term returns a term whose values are calculated with.
func (s *scope) term(t Term, home *Dataset, f Function) (value, error) {
	switch t.Op {
	case "":
		return s.operand(t.Column, home, f)
	case Number:
		return value{sql: plain(t.Number)}, nil
	case Days:
		return s.days(t, home, f)
	case Plus, Minus, Times, Over:
		return s.calculated(t, home, f)
	default:
		return value{}, &FigureError{Function: f, Dataset: home.Name, Reason: Incomplete}
	}
}

func (s *scope) calculated(t Term, home *Dataset, f Function) (value, error) {
	if len(t.Args) != 2 {
		return value{}, &FigureError{Function: f, Dataset: home.Name, Reason: Incomplete}
	}

	a, err := s.term(t.Args[0], home, f)
	if err != nil {
		return value{}, err
	}

	b, err := s.term(t.Args[1], home, f)
	if err != nil {
		return value{}, err
	}

	v := value{cells: append(a.cells, b.cells...)}

	switch {
	case t.Op == Times:
		v.sql, v.role = "("+a.sql+" * "+b.sql+")", product(a.role, b.role)
	case t.Op == Over:
		v.sql, v.role = "("+a.sql+" / nullif("+b.sql+", 0))", quotient(a.role, b.role)
	case a.unit != b.unit && a.unit != "" && b.unit != "":
		return value{}, &FigureError{Function: f, Dataset: home.Name, Reason: Units}
	default:
		v.sql, v.role, v.unit = "("+a.sql+" "+string(t.Op)+" "+b.sql+")", sum(a.role, b.role), a.unit
	}

	return v, nil
}

func (s *scope) operand(c Column, home *Dataset, f Function) (value, error) {
	at, err := s.find(c, home)
	if err != nil {
		return value{}, err
	}

	if !at.info.role().IsFigure() || !at.info.isNumeric() {
		return value{}, &FigureError{Function: f, Dataset: at.table.data.Name, Column: c.Name, Reason: NotAFigure}
	}

	return value{sql: at.sql, role: at.info.role(), unit: at.info.Unit, cells: []cell{at}}, nil
}

func (s *scope) days(t Term, home *Dataset, f Function) (v value, err error) {
	if len(t.Args) != 2 || t.Args[0].Op != "" || t.Args[1].Op != "" {
		return value{}, &FigureError{Function: f, Dataset: home.Name, Reason: Incomplete}
	}

	var dates [2]string

	for i, a := range t.Args {
		at, err := s.find(a.Column, home)
		if err != nil {
			return value{}, err
		}

		if at.info.role() != meaning.Date || (at.info.kind() != moment && at.info.kind() != text) {
			return value{}, &FigureError{Function: f, Dataset: at.table.data.Name, Column: a.Name, Reason: NotAFigure}
		}

		dates[i] = day(at.sql, at.info)
		v.cells = append(v.cells, at)
	}

	v.sql, v.role, v.unit = "date_diff('day', "+dates[0]+", "+dates[1]+")", meaning.Duration, "days"

	return v, nil
}

// product returns what the product of two figures is. A quantity times a price adds up; a price times a price does not.
func product(a, b meaning.Role) meaning.Role {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	case a == meaning.Balance || b == meaning.Balance:
		return meaning.Balance
	case a.Adds() || b.Adds():
		return meaning.Amount
	case a == meaning.Unknown || b == meaning.Unknown:
		return meaning.Unknown
	default:
		return meaning.Price
	}
}

// quotient returns what the quotient of two figures is: a rate, unless the divisor is a number.
func quotient(a, b meaning.Role) meaning.Role {
	if b == "" {
		return a
	}

	return meaning.Price
}

// sum returns what the sum or the difference of two figures is: it adds up only if both do.
func sum(a, b meaning.Role) meaning.Role {
	for _, role := range []meaning.Role{meaning.Price, meaning.Share, meaning.Balance, meaning.Unknown} {
		if a == role || b == role {
			return role
		}
	}

	if a == "" && b == "" {
		return ""
	}

	return meaning.Amount
}

// shown returns a term of a list, or one that rows are ordered by: any column, or a calculation.
func (s *scope) shown(t Term, home *Dataset) (sql string, at *cell, err error) {
	if t.Op == "" {
		found, err := s.find(t.Column, home)
		if err != nil {
			return "", nil, err
		}

		return found.sql, &found, nil
	}

	v, err := s.term(t, home, "")

	return v.sql, nil, err
}
