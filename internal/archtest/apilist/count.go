// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apilist

import "go/types"

// Count gives the number of exported names of a package: what stands at its top level, and the methods that it declares on
// exported types.
func Count(pkg *types.Package) int {
	n := 0
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		n++
		if named, ok := obj.Type().(*types.Named); ok && isType(obj) {
			for m := range named.Methods() {
				if m.Exported() {
					n++
				}
			}
		}
	}
	return n
}

func isType(obj types.Object) bool {
	t, ok := obj.(*types.TypeName)
	return ok && !t.IsAlias()
}
