package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// resolved is a dataset that a statement reads, at a snapshot.
type resolved struct {
	catalog.Dataset

	owner    string
	name     string // of its view in the sealed process
	shown    string // as written in the statement
	snapshot lake.Snapshot
	files    []lake.File // the files that the statement needs
	unlisted bool        // the files must still be listed from the store
}

func (r *resolved) table() lake.Table { return lake.Table{Account: r.Account, Dataset: r.ID} }

// path returns the address of the dataset: owner/namespace/name.
func (r *resolved) path() string { return r.owner + "/" + r.Namespace + "/" + r.Name }

// view returns the dataset as a view for the engine. number returns the name under which a file is mounted.
func (r *resolved) view(number func(lake.File) string) engine.View {
	view := engine.View{Name: r.name, Mapped: !lake.Uniform(r.snapshot, r.files)}

	for _, c := range r.snapshot.Columns {
		view.Columns = append(view.Columns, engine.Column{ID: c.ID, Name: c.Name, Type: string(c.Type)})
	}

	for _, file := range r.files {
		view.Files = append(view.Files, number(file))
	}

	return view
}

// resolver finds the datasets that a statement names.
type resolver struct {
	*Query

	who  auth.Principal
	want Statement
	only uuid.UUID // the only dataset that may be read; uuid.Nil means no restriction
}

// resolve returns the dataset and snapshot of each name in the statement, all at the same moment.
//
// Faults: NotFound for the namespace or the dataset of the request, QueryInvalid for names in the statement.
func (q *Query) resolve(ctx context.Context, who auth.Principal, want Statement, tables []table) (found []resolved, err error) {
	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		r := resolver{Query: q, who: who, want: want}
		found = nil

		if err := r.restrict(ctx, db); err != nil {
			return err
		}

		met := map[table]int{}
		inNamespace := r.only != uuid.Nil || want.Namespace == ""

		for i, t := range tables {
			if t.isInfo() {
				if r.only != uuid.Nil {
					return r.beyond(t)
				}

				continue
			}

			key := t.key()

			read, isMet := met[key]
			if !isMet {
				one, err := r.dataset(ctx, db, t)
				if err != nil {
					return err
				}

				found, read = with(found, one)
				met[key] = read
			}

			tables[i].read = read
			inNamespace = inNamespace || t.isBare()
		}

		if inNamespace {
			return nil
		}

		_, err := q.Catalog.Lookup(ctx, db, who, want.in())

		return err
	})
	if err != nil {
		return nil, err
	}

	return found, q.list(ctx, found)
}

// with adds a dataset to those that a statement reads, unless it has the same view as one of them, and returns its index.
func with(found []resolved, one resolved) (all []resolved, index int) {
	for i, other := range found {
		if other.ID != one.ID {
			continue
		}

		if folded(other.name) == folded(one.name) {
			return found, i
		}

		// A dataset with two names must have one snapshot.
		one.snapshot, one.files, one.unlisted = other.snapshot, other.files, other.unlisted
	}

	return append(found, one), len(found)
}

// list lists the files of snapshots that are not current. These lists are in the object store, so list runs without
// holding a database connection.
func (q *Query) list(ctx context.Context, reads []resolved) error {
	known := map[uuid.UUID][]lake.File{}

	for i := range reads {
		one := &reads[i]
		if !one.unlisted {
			continue
		}

		files, listed := known[one.snapshot.ID]
		if !listed {
			var err error
			if files, err = q.Lake.Files(ctx, one.table(), one.snapshot.ID); err != nil {
				return err
			}

			known[one.snapshot.ID] = files
		}

		one.files, one.unlisted = files, false
	}

	return nil
}

// restrict finds the dataset to which the request limits the statement, if any.
func (r *resolver) restrict(ctx context.Context, db postgres.Querier) error {
	if r.want.Dataset == "" {
		return nil
	}

	if r.want.Namespace == "" {
		return fault.Invalid("namespace", "is needed to find the dataset")
	}

	path := r.want.in()
	path.Dataset = r.want.Dataset

	found, err := r.Catalog.Allow(ctx, db, r.who, auth.Viewer, path)
	if fault.Is(err, fault.NotFound) {
		err = r.Catalog.NoDataset(ctx, db, r.who, path)
	}

	r.only = found.ID

	return err
}

func (r *resolver) dataset(ctx context.Context, db postgres.Querier, t table) (resolved, error) {
	one, err := r.find(ctx, db, t)
	if err != nil {
		return one, err
	}

	err = r.fix(ctx, db, &one, t.at)

	return one, err
}

// find returns the dataset of a name if the caller may read it.
func (r *resolver) find(ctx context.Context, db postgres.Querier, t table) (resolved, error) {
	if t.isBare() && r.want.Namespace == "" {
		return resolved{}, r.unplaced(ctx, db, t)
	}

	path := t.path(r.want.in())

	dataset, err := r.Catalog.Allow(ctx, db, r.who, auth.Viewer, path)
	if fault.Is(err, fault.NotFound) {
		return resolved{}, r.absent(ctx, db, t, path)
	}

	if err != nil {
		return resolved{}, err
	}

	if r.only != uuid.Nil && dataset.ID != r.only {
		return resolved{}, r.beyond(t)
	}

	return resolved{Dataset: dataset, owner: r.who.NameOf(path.Username), name: t.name, shown: t.String()}, nil
}

// beyond returns the fault for a name in a statement that the request limits to another dataset.
func (r *resolver) beyond(t table) error {
	return invalid(t.at, fmt.Sprintf("The request limits the statement to the dataset %s, but the statement also reads %s.", r.want.Dataset, t))
}

// fix sets the snapshot: the pinned one, the one at the requested moment, or the current one.
func (r *resolver) fix(ctx context.Context, db postgres.Querier, one *resolved, at int) error {
	var (
		snapshot *lake.Snapshot
		files    []lake.File
		err      error
	)

	switch pinned, isPinned := r.want.Pinned[one.ID]; {
	case isPinned:
		snapshot, files, err = r.pinned(ctx, db, one.table(), pinned)
	case r.want.AsOf.IsZero():
		snapshot, files, err = r.Lake.Current(ctx, db, one.table())
	default:
		snapshot, files, err = r.Lake.At(ctx, db, one.table(), r.want.AsOf)
	}

	if errors.Is(err, lake.ErrExpired) {
		return invalid(at, fmt.Sprintf("The snapshot of the dataset %s at that time has expired.", one.shown))
	}

	if err != nil {
		return err
	}

	if snapshot == nil || len(snapshot.Columns) == 0 {
		message := "The dataset %s has no rows yet."
		if !r.want.AsOf.IsZero() {
			message = "The dataset %s had no rows at that time."
		}

		return invalid(at, fmt.Sprintf(message, one.shown))
	}

	one.snapshot, one.files, one.unlisted = *snapshot, files, !snapshot.Current

	return nil
}

// pinned returns a snapshot. Its files are returned only if it is the current one.
func (r *resolver) pinned(ctx context.Context, db postgres.Querier, t lake.Table, id uuid.UUID) (*lake.Snapshot, []lake.File, error) {
	current, files, err := r.Lake.Current(ctx, db, t)
	if err != nil || (current != nil && current.ID == id) {
		return current, files, err
	}

	snapshot, err := r.Lake.Snapshot(ctx, db, t, id)
	snapshot.Current = false // it may have become current since: its files are not listed yet

	return &snapshot, nil, err
}

const maxNames = 200

// listAll ends a message about a name for which there is nothing to suggest.
const listAll = " Choose one of GET /schema/datasets/all, or ask the owner to share it with you."

// absent returns the fault for a dataset that does not exist or that the caller may not see; the message is the same for
// both. It suggests similar names in the same namespace, or lists the datasets that the caller may see there.
func (r *resolver) absent(ctx context.Context, db postgres.Querier, t table, path catalog.Path) error {
	names, err := r.Catalog.Names(ctx, db, r.who, path, maxNames)

	switch {
	case fault.Is(err, fault.NotFound) && t.isBare(): // about the namespace of the request itself
		if _, err := r.Catalog.Lookup(ctx, db, r.who, path); err != nil {
			return err
		}
	case fault.Is(err, fault.NotFound) && t.namespace != "":
		return r.absentNamespace(ctx, db, t, path)
	case err != nil && !fault.Is(err, fault.NotFound):
		return err
	}

	near := lexicon.Nearest(t.name[strings.LastIndexByte(t.name, '/')+1:], names)
	for _, list := range [][]string{names, near} {
		for i := range list {
			list[i] = t.beside(list[i]).String()
		}
	}

	message := noDataset(t)
	switch {
	case len(near) > 0:
	case len(names) > 0:
		message += " You can see: " + strings.Join(names[:min(len(names), maxListed)], ", ") + "."
	default:
		message += listAll
	}

	return withCandidates(invalid(t.at, message), near)
}

// absentNamespace is absent for a name whose namespace does not exist or is not visible. It suggests the dataset in
// namespaces with similar names.
func (r *resolver) absentNamespace(ctx context.Context, db postgres.Querier, t table, path catalog.Path) error {
	seen, err := r.Catalog.NamespaceNames(ctx, db, r.who, path.Username, maxNames)
	if err != nil {
		return err
	}

	near, err := r.datasetIn(ctx, db, t, path, lexicon.Nearest(t.namespace, seen))
	if err != nil {
		return err
	}

	message := noDataset(t)
	switch {
	case len(near) > 0:
	case len(seen) > 0:
		message += " Of " + r.who.NameOf(path.Username) + " you can see the namespaces " + strings.Join(seen[:min(len(seen), maxListed)], ", ") + "."
	default:
		message += listAll
	}

	return withCandidates(invalid(t.at, message), near)
}

// datasetIn returns the names of the dataset of a path in those namespaces in which the caller may see it.
func (r *resolver) datasetIn(ctx context.Context, db postgres.Querier, t table, path catalog.Path, namespaces []string) (names []string, err error) {
	for _, namespace := range namespaces {
		path.Namespace = namespace

		switch found, err := r.Catalog.Allow(ctx, db, r.who, auth.Viewer, path); {
		case err == nil:
			names = append(names, dotted(t.owner, namespace, found.Name))
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}

	return names, nil
}

// maxTried limits in how many namespaces a dataset is looked for.
const maxTried = 20

// unplaced returns the fault for a name without a namespace in a request that has none either. It suggests the name with
// those namespaces of the owner that have such a dataset, or lists the namespaces.
func (r *resolver) unplaced(ctx context.Context, db postgres.Querier, t table) error {
	path := r.want.in()
	path.Dataset = t.name

	seen, err := r.Catalog.NamespaceNames(ctx, db, r.who, path.Username, maxTried)
	if err != nil {
		return err
	}

	near, err := r.datasetIn(ctx, db, t, path, seen)
	if err != nil {
		return err
	}

	message := fmt.Sprintf("The name %s has no namespace, and neither has the request. Write %s, or set namespace in the request (quern query -n NAMESPACE).", t, dotted("namespace", t.name))
	if len(near) == 0 && len(seen) > 0 {
		message += " Of " + r.who.NameOf(path.Username) + " you can see the namespaces " + strings.Join(seen, ", ") + "."
	}

	return withCandidates(invalid(t.at, message), near)
}

func noDataset(t table) string {
	return fmt.Sprintf("There is no dataset %s that you can see.", t.quoted())
}
