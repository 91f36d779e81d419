# Prints what bash offers after each line, and a full stop after that:   bash ask.bash COMPLETION LINE…
source "$1"
shift
for line in "$@"; do
  # As readline takes words apart. What is being typed is a word too, also when it is empty.
  read -ra COMP_WORDS < <(sed -E 's/([=:]+)/ \1 /g' <<<"$line")
  [[ $line != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _cpn
  printf '%s\n' "${COMPREPLY[@]}" .
done
