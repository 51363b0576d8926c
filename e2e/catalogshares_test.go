package e2e

import "strings"

// shareScenarios are about sharing a namespace or a dataset.
func shareScenarios() []scenario {
	return []scenario{
		{name: "sharing a namespace", steps: []step{
			{as: "nina", do: "GET /user/me", status: 200, want: account("nina", "nina")},
			{as: "sue", do: "POST /ingest/new/Shop/goods", status: 201, want: datasetBody("sue/Shop/goods", "", "{}")},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
			{as: "nina", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "viewer"), status: 200},
			{as: "sue", do: "POST /permissions/namespaces/SUE/SHOP/shares", body: shareBody("@guests", "viewer"), status: 200},
			{as: "sue", do: "POST /permissions/namespaces/sue/shop/shares", body: shareBody("Max.Late", "editor"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), pendingBody("max.late", "editor"), shareBody("nina", "viewer"))},
			{
				as: "sue", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200,
				want: shares(viaBody("@guests", "viewer"), `{"username": "max.late", "role": "editor", "pending": true, "via": "namespace"}`, viaBody("nina", "viewer")),
			},

			{as: "nina", do: "GET /data/SUE/shop/goods", status: 200, want: datasetBody("sue/Shop/goods", "", "{}")},
			{as: "nina", do: "PUT /data/sue/shop/goods/inferDefinition", body: `{"dataDescription": "x"}`, status: 403, want: lacksRole("editor", "viewer")},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "nina", do: "DELETE /data/sue/shop/goods", status: 403, want: lacksRole("owner", "viewer")},
			{as: "nina", do: "PATCH /data/sue/shop/goods", body: `{"name": "x"}`, status: 403, want: lacksRole("owner", "viewer")},
			{as: "nina", do: "GET /permissions/namespaces/sue/shop/shares", status: 403, want: ownerOnly},
			{as: "nina", do: "GET /schema/sue/namespaces", status: 200, want: page(namespaceBody("sue", "Shop", "schema", "viewer"))},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 200, want: page(plainItem("sue/Shop/goods", "viewer"))},
			{as: "sue", do: "POST /ingest/new/shop/later", status: 201, want: datasetBody("sue/Shop/later", "", "{}")},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 200, want: page(plainItem("sue/Shop/goods", "viewer"), plainItem("sue/Shop/later", "viewer"))},

			// Sharing again replaces the role, with a higher or a lower one.
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("NINA", "editor"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), pendingBody("max.late", "editor"), shareBody("nina", "editor"))},
			{as: "nina", do: "PUT /data/sue/shop/goods/inferDefinition", body: `{"dataDescription": "Goods"}`, status: 201, want: definitionBody("Goods", "{}")},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "nina", do: "DELETE /data/sue/shop/goods", status: 403, want: lacksRole("owner", "editor")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "viewer"), status: 200},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},

			// A pending grant becomes effective when a user with its name signs in.
			{as: "max.late", do: "POST /data/sue/shop/goods/clear", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), shareBody("max.late", "editor"), shareBody("nina", "viewer"))},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("max.late", "viewer"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), shareBody("max.late", "viewer"), shareBody("nina", "viewer"))},
			{as: "max.late", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},

			{as: "guest in guests", do: "GET /data/sue/shop/goods", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "other in Guests", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "guest in members", do: "GET /data/sue/shop/goods", status: 404, want: absent},

			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("self", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("Sue", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("two words", "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody(strings.Repeat("x", 129), "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("@", "viewer"), status: 422, want: invalid("username", "is not a valid group name")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("", "viewer"), status: 422, want: invalid("username", "must have at least 1 character")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "owner"), status: 422, want: invalid("role", badShareRole)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: `{"username": "nina"}`, status: 422, want: invalid("role", "is required")},
			{as: "sue", do: "POST /permissions/namespaces/self/absent/shares", body: shareBody("nina", "viewer"), status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/self/-absent/shares", body: shareBody("nina", "viewer"), status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/nina/shop/shares", body: shareBody("nina", "viewer"), status: 403, want: ownerOnly},

			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina", "role": "owner"}`, status: 422, want: invalid("role", badShareRole)},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "stranger"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "@strangers"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/absent/shares", body: `{"username": "nina"}`, status: 404, want: absent},
			{as: "nina", do: "DELETE /permissions/namespaces/sue/shop/shares", body: `{"username": "nina"}`, status: 403, want: ownerOnly},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina", "role": "editor"}`, status: 200},
			{as: "nina", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "nina", do: "GET /schema/sue/namespaces", status: 200, want: page()},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/SUE/SHOP/shares", body: `{"username": "MAX.late", "role": null}`, status: 200},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "@guests"}`, status: 200},
			{as: "guest in guests", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
		}},
		{name: "sharing a dataset", steps: []step{
			{as: "dina", do: "GET /user/me", status: 200, want: account("dina", "dina")},
			{as: "dora", do: "POST /ingest/new/shop/goods", status: 201, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dora", do: "POST /ingest/new/shop/secret", status: 201, want: datasetBody("dora/shop/secret", "", "{}")},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dina", "viewer"), status: 200},
			{as: "dora", do: "POST /permissions/datasets/DORA/SHOP/GOODS/shares", body: shareBody("@guests", "editor"), status: 200},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("comes-later", "viewer"), status: 200},
			{as: "dora", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200, want: shares(shareBody("@guests", "editor"), pendingBody("comes-later", "viewer"), shareBody("dina", "viewer"))},
			{as: "dora", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/secret", status: 404, want: absent},
			{as: "dina", do: "GET /permissions/datasets/dora/shop/goods/shares", status: 403, want: ownerOnly},
			{as: "dina", do: "GET /schema/dora/namespaces", status: 200, want: page(namespaceBody("dora", "shop", "schema", ""))},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "viewer"))},
			{as: "dina in guests", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "editor"))},
			{as: "dina in guests", do: "POST /data/dora/shop/goods/clear", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "comes-later", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "stranger", do: "GET /schema/dora/namespaces", status: 200, want: page()},
			{as: "stranger", do: "GET /schema/dora/shop/datasets", status: 404, want: absent},

			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dora", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("self", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("-dina", "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dina", "reader"), status: 422, want: invalid("role", badShareRole)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/absent/shares", body: shareBody("dina", "viewer"), status: 404, want: absent},
			{as: "dora", do: "GET /permissions/datasets/self/shop/absent/shares", status: 404, want: absent},

			// Revoking a grant on a namespace keeps the grants on its datasets. The highest role applies.
			{as: "dora", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("dina", "editor"), status: 200},
			{as: "dina", do: "POST /data/dora/shop/goods/clear", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "editor"), plainItem("dora/shop/secret", "editor"))},
			{as: "dora", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200, want: shares(shareBody("@guests", "editor"), shareBody("comes-later", "viewer"), shareBody("dina", "viewer"), viaBody("dina", "editor"))},
			{as: "dora", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "dina"}`, status: 200},
			{as: "dora", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200, want: shares(shareBody("@guests", "editor"), shareBody("comes-later", "viewer"), shareBody("dina", "viewer"))},
			{as: "dina", do: "POST /data/dora/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/secret", status: 404, want: absent},

			// Grants survive a rename.
			{as: "dora", do: "PATCH /data/self/shop/goods", body: `{"name": "wares"}`, status: 200, want: datasetBody("dora/shop/wares", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 404, want: absent},
			{as: "dina", do: "GET /data/dora/shop/wares", status: 200, want: datasetBody("dora/shop/wares", "", "{}")},
			{as: "dora", do: "GET /permissions/datasets/self/shop/wares/shares", status: 200, want: shares(shareBody("@guests", "editor"), shareBody("comes-later", "viewer"), shareBody("dina", "viewer"))},

			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina", "role": "nobody"}`, status: 422, want: invalid("role", badShareRole)},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina", "role": "viewer"}`, status: 200},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina"}`, status: 404, want: absent},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "@guests"}`, status: 200},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "comes-later"}`, status: 200},
			{as: "dina", do: "GET /data/dora/shop/wares", status: 404, want: absent},
			{as: "dina", do: "GET /schema/dora/namespaces", status: 200, want: page()},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 404, want: absent},
		}},
	}
}
