package main

import (
	"context"
	"fmt"
	"strings"

	"quern.dev/quern/api"
)

// datasetsRead is the largest number of datasets of a namespace whose shares are read.
const datasetsRead = 100

// otherAccess returns, in sentences, which other shares give a user access to a namespace, its datasets or a dataset, and how to end
// them. Groups are named because Quern does not know who their members are.
func otherAccess(ctx context.Context, client *api.Client, at name, user string) (lines []string, err error) {
	all, err := sharesOf(ctx, client, at)
	if err != nil {
		return nil, err
	}

	for _, share := range all {
		lines = append(lines, stays(share, at, user)...)
	}

	if at.dataset != "" {
		return lines, nil
	}

	read := 0

	for item, err := range api.Pages(func(cursor *string) ([]api.DatasetItem, *string, error) {
		page, err := api.Read[api.DatasetList](client.ListDatasets(ctx, at.owner, at.namespace, &api.ListDatasetsParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	}) {
		if err != nil {
			return nil, err
		}

		if read++; read > datasetsRead {
			return append(lines, fmt.Sprintf("%s has more than %d datasets. `quern shares %s/DATASET` lists the shares of one.", at, datasetsRead, at)), nil
		}

		more, err := onDatasetOnly(ctx, client, name{at.owner, at.namespace, item.Name}, user)
		if err != nil && !api.IsCode(err, api.NOTFOUND) { // deleted meanwhile
			return nil, err
		}

		lines = append(lines, more...)
	}

	return lines, nil
}

// onDatasetOnly returns the sentences about shares of the dataset itself.
func onDatasetOnly(ctx context.Context, client *api.Client, at name, user string) (lines []string, err error) {
	all, err := sharesOf(ctx, client, at)

	for _, share := range all {
		if share.Via == nil {
			lines = append(lines, stays(share, at, user)...)
		}
	}

	return lines, err
}

// stays returns what a share means for a user, or nothing.
func stays(share api.Share, at name, user string) []string {
	through, where := "", at
	if share.Via != nil {
		through, where = " through the namespace", name{at.owner, at.namespace, ""}
	}

	isGroup := strings.HasPrefix(share.Username, "@")

	switch {
	case strings.EqualFold(share.Username, user):
		return []string{fmt.Sprintf("%s is still %s of %s%s. To end that: quern unshare %s %s", user, share.Role, at, through, where, user)}
	case isGroup && !strings.HasPrefix(user, "@"):
		return []string{fmt.Sprintf("Members of %s are %s of %s%s. If %s is one of them: quern unshare %s %s", share.Username, share.Role, at, through, user, where, share.Username)}
	default:
		return nil
	}
}
