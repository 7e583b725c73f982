# Entities and anchors that grow when they are read.
{
  echo '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
  previous=a; for name in b c d e f g h i j; do printf '<!ENTITY %s "' $name; for n in 1 2 3 4 5 6 7 8 9 0; do printf '&%s;' $previous; done; echo '">'; previous=$name; done
  echo ']><x>&j;</x>'
  echo 'a: &a [x,x,x,x,x,x,x,x,x]'; previous=a
  for name in b c d e f g h i; do echo "$name: &$name [*$previous,*$previous,*$previous,*$previous,*$previous,*$previous]"; previous=$name; done
} > "$OUTPUT"
