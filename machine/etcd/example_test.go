// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/etcd"
)

// A machine of the control plane leaves etcd before it is switched off. The controller calls this as Options.Members.
func ExampleClient_Leave() {
	var server *httptest.Server // stands in for etcd
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/member/list"):
			fmt.Fprintf(w, `{"members":[{"ID":"1","name":"c0"},{"ID":"2","name":"c1","clientURLs":[%q]},{"ID":"3","name":"c2","clientURLs":[%q]}]}`, server.URL, server.URL)
		case strings.HasSuffix(r.URL.Path, "/member/remove"):
			fmt.Println("a member is removed")
			fmt.Fprint(w, `{}`)
		default:
			fmt.Fprint(w, `{"health":"true"}`)
		}
	}))
	defer server.Close()
	members, err := etcd.New(etcd.Options{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := machine.Machine{Key: machine.Key{Namespace: "fleet", Name: "c0"}}
	m.Spec.Roles = []string{machine.RoleControlPlane}
	done, blocked, err := members.Leave(context.Background(), m)
	fmt.Println(done, blocked, err)
	// Output:
	// a member is removed
	// true  <nil>
}
