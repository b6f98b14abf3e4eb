#!/bin/sh
# Installs postrider: the Debian package on Debian and Ubuntu, otherwise the binary with its systemd unit.
#
#   sh install.sh                 install the newest release
#   sh install.sh --dry-run       print what would be done, and change nothing
#   sh install.sh --version 1.2.3 install this release
#   sh install.sh --from URL      another place for releases: an https:// URL, or a local directory
#   sh install.sh --key KEY       another minisign public key
#   sh install.sh --allow-downgrade   install the newest release even if it is older than the installed one
#
# It verifies the signature of SHA256SUMS with minisign, and the checksum of what it installs. It never starts the
# server, which needs a configuration first. It refuses a "newest" release that is older than the installed one: a mirror
# could offer an old release, whose signature is valid, to bring back a vulnerability that has been fixed. `--version` may name one.
#
# Everything is in one function that is called on the last line: a download that breaks off runs nothing.

main() {
    set -eu
    # `packaging/release` writes the place and the key of the release here.
    from='@RELEASES@'
    key='@PUBLIC_KEY@'
    config=/etc/postrider/postrider.toml
    version=latest
    dry_run=no
    allow_downgrade=no
    while [ $# -gt 0 ]; do
        case $1 in
        --dry-run) dry_run=yes ;;
        --allow-downgrade) allow_downgrade=yes ;;
        --version | --from | --key)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
            --version) version=$2 ;;
            --from) from=$2 ;;
            --key) key=$2 ;;
            esac
            shift
            ;;
        *) fail "unknown option $1: see the first lines of this script" ;;
        esac
        shift
    done
    case $from in
    @*) fail "this script is not from a release: name the place of the releases with --from, and the key with --key" ;;
    esac

    [ "$(uname -s)" = Linux ] || fail "postrider runs on Linux; this is $(uname -s). Use the container image or a virtual machine."
    case $(uname -m) in
    x86_64) architecture=amd64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) fail "there is no package for $(uname -m): build it with cargo build --release" ;;
    esac
    kind=$(package_kind)
    [ "$dry_run" = yes ] || [ "$(id -u)" -eq 0 ] || fail "run this as root, for example with sudo; --dry-run shows what it does"

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    place=$from/$version
    fetch "$place/SHA256SUMS" "$work/SHA256SUMS"
    fetch "$place/SHA256SUMS.minisig" "$work/SHA256SUMS.minisig"
    verify_signature
    # The name has the version: a mirror cannot give an older release for the one that was named.
    wanted=_$architecture.$kind
    if [ "$version" != latest ]; then
        wanted=postrider_$version$wanted
    fi
    file=$(awk -v wanted="$wanted" 'substr($2, length($2) - length(wanted) + 1) == wanted { print $2; exit }' "$work/SHA256SUMS")
    [ -n "$file" ] || fail "the release at $place has no package of $version for $architecture ($kind)"
    case $file in
    */* | -*) fail "SHA256SUMS has the unsafe name $file" ;;
    esac
    offered=${file#postrider_}
    offered=${offered%"_$architecture.$kind"}
    refuse_downgrade
    fetch "$place/$file" "$work/$file"
    (cd "$work" && grep -F "  $file" SHA256SUMS | sha256sum --check --quiet -) || fail "the checksum of $file is wrong"
    say "verified $file"

    case $kind in
    deb)
        if [ "$downgrade" = yes ]; then
            run apt-get install -y --allow-downgrades "$work/$file"
        else
            run apt-get install -y "$work/$file"
        fi
        ;;
    tar.gz) install_archive "$work/$file" ;;
    esac
    if [ "$dry_run" = yes ]; then
        say "nothing was changed"
    elif [ ! -e "$config" ]; then
        say "installed $(postrider --version). Next: run postrider setup as root; it takes you to a running server and a test email"
    elif [ "$kind" = deb ]; then
        say "installed $(postrider --version); the package restarts a running server"
    else
        say "installed $(postrider --version). A running server still runs the old version; restart it: systemctl restart postrider"
    fi
}

# The kind of package for this distribution.
package_kind() {
    # shellcheck disable=SC1091
    like=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}")
    case " $like " in
    *" debian "* | *" ubuntu "*) echo deb ;;
    *) echo tar.gz ;;
    esac
}

verify_signature() {
    if ! command -v minisign >/dev/null; then
        if [ "$kind" = deb ]; then
            run apt-get install -y --no-install-recommends minisign
        fi
        if ! command -v minisign >/dev/null; then
            [ "$dry_run" = yes ] || fail "minisign is needed to verify the release: install it, then run this again"
            say "would verify the signature of SHA256SUMS"
            return 0
        fi
    fi
    minisign -V -q -P "$key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" ||
        fail "the signature of SHA256SUMS is not valid: this release does not come from postrider's authors"
}

# Refuses `latest` if the release is older than the installed one. Sets `downgrade`.
refuse_downgrade() {
    downgrade=no
    [ -x /usr/bin/postrider ] || return 0
    installed=$(/usr/bin/postrider --version 2>/dev/null | cut -d ' ' -f 2)
    [ -n "$installed" ] || fail "the installed /usr/bin/postrider does not report its version: remove it, then run this again"
    is_older "$offered" "$installed" || return 0
    downgrade=yes
    if [ "$version" = latest ] && [ "$allow_downgrade" = no ]; then
        fail "the newest release at $from is $offered, older than the installed $installed. Nothing was changed. Either this place is out of date, or someone offers an old release on purpose. Use another place (--from). If you want $offered, read docs/user/upgrade.md about going back, then add --allow-downgrade."
    fi
    say "replacing $installed with the older $offered"
}

# Returns whether the first version is older than the second (semver.org, section 11). awk itself exits with 1 or 2 if it
# fails, which must not count as an answer.
is_older() {
    status=0
    awk -v a="$1" -v b="$2" '
    function compare_parts(a, b, x, y, n, m, i) {
        n = split(a, x, ".")
        m = split(b, y, ".")
        for (i = 1; i <= n && i <= m; i++) {
            if (x[i] == y[i]) continue
            if (x[i] ~ /^[0-9]+$/ && y[i] ~ /^[0-9]+$/) { if (x[i] + 0 != y[i] + 0) return x[i] + 0 < y[i] + 0 ? -1 : 1; continue }
            if (x[i] ~ /^[0-9]+$/) return -1
            if (y[i] ~ /^[0-9]+$/) return 1
            return (x[i] "") < (y[i] "") ? -1 : 1
        }
        return n < m ? -1 : n > m
    }
    function after_dash(version) { return index(version, "-") ? substr(version, index(version, "-") + 1) : "" }
    BEGIN {
        sub(/\+.*/, "", a); sub(/\+.*/, "", b)
        pre_a = after_dash(a); pre_b = after_dash(b)
        sub(/-.*/, "", a); sub(/-.*/, "", b)
        order = compare_parts(a, b)
        # A version before a release is older than the release.
        if (order == 0 && (pre_a == "") != (pre_b == "")) order = pre_a == "" ? 1 : -1
        else if (order == 0) order = compare_parts(pre_a, pre_b)
        exit order < 0 ? 10 : 11
    }' || status=$?
    case $status in
    10) return 0 ;;
    11) return 1 ;;
    *) fail "the versions $1 and $2 cannot be compared: awk ended with status $status" ;;
    esac
}

# Installs the binary and the unit on distributions without a package.
install_archive() {
    tar -xzf "$1" -C "$work" --no-same-owner
    check_upgrade "$work/postrider/postrider"
    run install -D -m 755 "$work/postrider/postrider" /usr/bin/postrider
    run install -D -m 644 "$work/postrider/postrider.service" /etc/systemd/system/postrider.service
    run install -D -m 644 "$work/postrider/postrider.toml" /usr/share/doc/postrider/examples/postrider.toml
    if [ -d /run/systemd/system ]; then
        run systemctl daemon-reload
    fi
}

# Before an upgrade replaces anything, the new program checks the present configuration and store, as the Debian package
# does (packaging/debian/scripts/preinst).
check_upgrade() { # new program
    if [ ! -x /usr/bin/postrider ] || [ ! -e "$config" ] || [ "${POSTRIDER_SKIP_PREFLIGHT:-}" = 1 ]; then
        return 0
    fi
    if [ "$dry_run" = yes ]; then
        say "would check $config and its store with the new program"
        return 0
    fi
    # The variables are for the checks only.
    (
        read_environment
        # Without the files of this machine: the unit's credentials (LoadCredential) exist only while the service runs.
        "$1" check --config "$config" --file-only >&2 ||
            fail "the new version refuses $config, for the reasons above. Nothing was changed. Correct the file, then run this again. To skip this check, set POSTRIDER_SKIP_PREFLIGHT=1."
        "$1" admin --config "$config" store format >&2 ||
            fail "the new version cannot use the store, for the reason above. Nothing was changed. If the store has a newer format, install a version that reads it; to go back to an older version, restore a backup (docs/user/upgrade.md). If the database did not answer, run this again when it does. To skip this check, set POSTRIDER_SKIP_PREFLIGHT=1."
    ) || exit 1
}

# Exports the settings in the environment file of the service, which has assignments, not shell syntax: a value may be
# quoted as a whole.
read_environment() {
    [ -r /etc/default/postrider ] || return 0
    while read -r line || [ -n "$line" ]; do
        name=${line%%=*}
        value=${line#*=}
        case $name in
        POSTRIDER_*[!A-Z0-9_]* | "$line") continue ;;
        POSTRIDER_*) ;;
        *) continue ;;
        esac
        case $value in
        \"*\" | \'*\') value=${value#?} && value=${value%?} ;;
        esac
        export "$name=$value"
    done </etc/default/postrider
}

fetch() { # address, file
    case $1 in
    https://*) curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --output "$2" "$1" ;;
    /* | ./*) cp "$1" "$2" ;;
    *) fail "$1 is neither an https:// address nor a directory" ;;
    esac || fail "cannot fetch $1"
}

run() {
    if [ "$dry_run" = yes ]; then
        echo "would run: $*"
    else
        "$@"
    fi
}

say() { echo "postrider: $*"; }

fail() {
    echo "postrider: $*" >&2
    exit 1
}

main "$@"
