// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import "path"

// IsPublic reports whether users may import a package, by its path inside the module. Test kits are public.
func IsPublic(rel string) bool { return isPublicRoot(rootOf(rel)) && !isInternal(rel) }

// IsKit reports whether a package is a test kit.
func IsKit(rel string) bool { return isKit(rel) }

// IsVersioned reports whether a package holds the types of an API group's version, which follow the conventions of Kubernetes.
func IsVersioned(rel string) bool { return path.Base(rel) == "v1alpha1" }
