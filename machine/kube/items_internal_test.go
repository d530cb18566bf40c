// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// R-MA-16: what an older controller does not know stays also in the items of a list that it changes, where an item can be found again; where it can't, the list is what
// was decided.
func TestItemsKeepWhatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct{ is, before, after, want string }{
		"one is changed, one goes, one comes": {
			is:     `{"hooks":[{"name":"a","owner":"x","new":1},{"name":"b","new":2},{"name":"c","new":{"n":3}}]}`,
			before: `{"hooks":[{"name":"a","owner":"x"},{"name":"b"},{"name":"c"}]}`, after: `{"hooks":[{"name":"c"},{"name":"d"},{"name":"a","owner":"y"}]}`,
			want: `{"hooks":[{"name":"c","new":{"n":3}},{"name":"d"},{"name":"a","owner":"y","new":1}]}`,
		},
		"two fields are the key": {
			is:     `{"taints":[{"key":"a","effect":"NoSchedule","value":"1","new":1},{"key":"a","effect":"NoExecute","new":2}]}`,
			before: `{"taints":[{"key":"a","effect":"NoSchedule","value":"1"},{"key":"a","effect":"NoExecute"}]}`,
			after:  `{"taints":[{"key":"a","effect":"NoExecute","value":"2"},{"key":"a","effect":"NoSchedule"}]}`,
			want:   `{"taints":[{"key":"a","effect":"NoExecute","value":"2","new":2},{"key":"a","effect":"NoSchedule","new":1}]}`,
		},
		"an owner goes": {
			is:     `{"metadata":{"ownerReferences":[{"uid":"1","new":1},{"uid":"2","new":2}]}}`,
			before: `{"metadata":{"ownerReferences":[{"uid":"1"},{"uid":"2"}]}}`, after: `{"metadata":{"ownerReferences":[{"uid":"2"},{"uid":"3"}]}}`,
			want: `{"metadata":{"ownerReferences":[{"uid":"2","new":2},{"uid":"3"}]}}`,
		},
		"all go":                           {is: `{"hooks":[{"name":"a","new":1}],"x":1}`, before: `{"hooks":[{"name":"a"}]}`, after: `{}`, want: `{"x":1}`},
		"the last goes and the list stays": {is: `{"hooks":[{"name":"a","new":1}]}`, before: `{"hooks":[{"name":"a"}]}`, after: `{"hooks":[]}`, want: `{"hooks":[]}`},
		"two of one key": {
			is: `{"hooks":[{"name":"a","new":1},{"name":"a","new":2}]}`, before: `{"hooks":[{"name":"a"},{"name":"a"}]}`, after: `{"hooks":[{"name":"a"}]}`,
			want: `{"hooks":[{"name":"a"}]}`,
		},
		"an item has no key": {is: `{"hooks":[{"name":"a","new":1},{}]}`, before: `{"hooks":[{"name":"a"},{}]}`, after: `{"hooks":[{"name":"a"}]}`, want: `{"hooks":[{"name":"a"}]}`},
		"another list":       {is: `{"disks":[{"name":"a","new":1}]}`, before: `{"disks":[{"name":"a"}]}`, after: `{"disks":[{"name":"a","id":1}]}`, want: `{"disks":[{"name":"a","id":1}]}`},
		"words":              {is: `{"hooks":["a","b"]}`, before: `{"hooks":["a","b"]}`, after: `{"hooks":["b"]}`, want: `{"hooks":["b"]}`},
		"a list of that name in a provider's config": {
			is: `{"providerConfig":{"hooks":[{"name":"a","gone":1,"none":null}]}}`, before: `{"providerConfig":{"hooks":[{"name":"a","gone":1,"none":null}]}}`,
			after: `{"providerConfig":{"hooks":[{"name":"a","none":null}]}}`, want: `{"providerConfig":{"hooks":[{"name":"a","none":null}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(parsed(t, c.want), changed(parsed(t, c.is), parsed(t, c.before), parsed(t, c.after))); diff != "" {
				t.Errorf("R-MA-16 (-want +got):\n%s", diff)
			}
		})
	}
}

func parsed(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
